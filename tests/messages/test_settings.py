"""Errors of settings: wrong names, wrong values, wrong places."""

# Other compile options: set where they must not be, to read the refusal.

import numpy as np
from support.messages import line_of, refusal, says

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import backends, errors, lax

X = np.ones((3, 3), np.float32)


def test_a_name_no_setting_has():
    message = refusal(lambda: backends.flags({"cuda.matmul.allow_tf23": True}), errors.SettingError, AttributeError)
    says(message.head, "there is no setting 'cuda.matmul.allow_tf23'; did you mean 'cuda.matmul.allow_tf32'?")
    says(message.remedy, "backends.describe()")
    message = refusal(lambda: backends.cuda.matmul.allow_tf23, errors.SettingError)
    says(message.head, "backends.cuda.matmul has no setting 'allow_tf23'; did you mean 'allow_tf32'?")
    says(message.remedy, "it has ", "fp32_precision")
    message = refusal(lambda: setattr(backends.cudnn, "determinstic", True), errors.SettingError)
    says(message.head, "backends.cudnn has no setting 'determinstic'; did you mean 'deterministic'?")
    message = refusal(lambda: setattr(backends, "fp32_precison", "tf32"), errors.SettingError)
    says(message.head, "backends has no setting 'fp32_precison'; did you mean 'fp32_precision'?")


def test_a_value_a_setting_does_not_take():
    message = refusal(lambda: setattr(backends, "fp32_precision", "tf23"), errors.ArgumentError, ValueError)
    says(message.head, "fp32_precision = 'tf23' is not a value of this setting; did you mean 'tf32'?")
    says(message.remedy, "use one of 'ieee', 'tf32', 'bf16'")
    message = refusal(lambda: backends.cudnn.flags(benchmark="sometimes"), errors.ArgumentError)
    says(message.head, "cudnn.benchmark = 'sometimes'")
    says(message.remedy, "True or False")
    message = refusal(lambda: setattr(backends.opt_einsum, "memory_limit", -1), errors.ArgumentError)
    says(message.remedy, "an int of at least 1, or None (no limit)")
    for group, name in ((backends, "deterministic_algorithms"), (backends.mkldnn, "enabled")):
        message = refusal(lambda group=group, name=name: setattr(group, name, -1.5), errors.ArgumentError)
        says(message.head, f"{name} = -1.5 is not a value of this setting")
    message = refusal(lambda: backends.use_deterministic_algorithms("later"), errors.ArgumentError)
    says(message.head, "mode='later'")
    says(message.remedy, "True or False")


def test_a_setting_of_whole_programs_inside_one():
    def loss(x):
        with backends.xla.flags(fast_math=True):  # the block
            return fnp.sum(x)

    message = refusal(lambda: ft.jit(loss)(X), errors.ArgumentError)
    says(message.head, "xla.fast_math is changed inside a function that is being traced")
    says(message.at, line_of(loss, "# the block"))
    says(message.remedy, "around the call of the jitted function")


def test_a_precision_of_one_call():
    def product(x):
        return lax.dot(x, x, precision="exact")  # the product

    message = refusal(lambda: ft.jit(product)(X), errors.ArgumentError)
    says(message.head, "dot_general(f32[3,3], f32[3,3], ", "precision='exact' is unknown")
    says(message.at, line_of(product, "# the product"))
    says(message.remedy, "'highest'", "BF16_BF16_F32_X3")


def test_a_path_of_einsum():
    message = refusal(lambda: fnp.einsum("ij,jk,kl->il", X, X, X, optimize=[(0, 3)]), errors.ArgumentError)
    says(message.head, "fnp.einsum('ij,jk,kl->il')", "step (0, 3) of the path [(0, 3)] does not fit 3 operands")
    says(message.remedy, "products are appended")
