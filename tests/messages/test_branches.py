"""Errors of cond and switch, which show the results of the branches side by side."""

import numpy as np
from support.messages import line_of, refusal, says

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import errors, lax

X = np.ones(3, np.float32)


def gives_pair(x):
    return {"a": x, "b": x[0]}


def test_shapes_and_dtypes_side_by_side():
    def f(x):
        return lax.cond(x[0] > 0, gives_pair, lambda x: {"a": x[:2], "b": x[0] > 0}, x)  # the cond

    for run, x in [(f, X), (ft.jit(f), X), (ft.vmap(f), np.ones((2, 3), np.float32))]:
        message = refusal(lambda run=run, x=x: run(x), errors.ShapeError, TypeError)
        says(message.head, "lax.cond", "true_fun gives_pair", "false_fun <lambda>")
    message = refusal(lambda: f(X), errors.ShapeError)
    rows = [row.split() for row in message.head.split("\n")[1:]]
    assert rows == [["true_fun", "false_fun"], ["['a']", "f32[3]", "f32[2]"], ["['b']", "f32[]", "bool[]"]]
    says(message.at, line_of(f, "# the cond"))
    says(refusal(lambda: ft.jit(f)(X)).under, "jit(f)")


def test_only_leaves_that_differ_are_reported():
    message = refusal(lambda: lax.cond(True, lambda: (X, X), lambda: (X, X > 0)), errors.DtypeError, TypeError)
    rows = [row.split() for row in message.head.split("\n")[1:]]
    assert rows == [["true_fun", "false_fun"], ["[1]", "f32[3]", "bool[3]"]]
    says(message.remedy, "astype")


def test_structures_side_by_side():
    message = refusal(lambda: lax.cond(True, gives_pair, lambda x: {"a": x}, X), errors.TreeError, TypeError)
    rows = [row.split() for row in message.head.split("\n")[1:]]
    assert rows == [["true_fun", "false_fun"], ["['b']", "f32[]", "-"]]
    message = refusal(lambda: lax.cond(True, lambda: (X, None), lambda: [X, None]), errors.TreeError)
    says(message.head, "true_fun: ", "false_fun: ", "(*, None)", "[*, None]")


def test_all_branches_of_a_switch():
    message = refusal(lambda: lax.switch(1, [fnp.sin, fnp.sum, fnp.sin], X), errors.ShapeError)
    rows = [row.split() for row in message.head.split("\n")[1:]]
    assert rows == [["branches[0]", "branches[1]", "branches[2]"], ["the", "result", "f32[3]", "f32[]", "f32[3]"]]


def test_what_chooses_must_be_a_scalar_number():
    message = refusal(lambda: lax.cond(X > 0, fnp.sin, fnp.cos, X), errors.ShapeError, TypeError)
    says(message.head, "predicate of lax.cond", "scalar", "bool[3]")
    says(message.remedy, ".all()", "lax.select")
    message = refusal(lambda: lax.cond(1j, fnp.sin, fnp.cos, X), errors.DtypeError)
    says(message.head, "boolean", "c64[]")
    says(refusal(lambda: lax.cond("yes", fnp.sin, fnp.cos, X), errors.DtypeError).head, "'yes'", "is not a number")
    message = refusal(lambda: lax.switch(1.0, [fnp.sin, fnp.cos], X), errors.DtypeError)
    says(message.head, "integer", "f32[]")
    message = refusal(lambda: lax.switch(X, [fnp.sin, fnp.cos], X), errors.ShapeError)
    says(message.head, "index of lax.switch", "f32[3]")


def test_functions_and_operands():
    says(refusal(lambda: lax.cond(True, fnp.sin(X), fnp.cos, X), errors.ArgumentError).head, "takes functions")
    says(refusal(lambda: lax.cond(True, fnp.sin, fnp.cos, X, operand=X), errors.ArgumentError).head, "operand=")
    says(refusal(lambda: lax.switch(0, [], X), errors.ArgumentError).remedy, "list of functions")
    says(refusal(lambda: lax.switch(0, fnp.sin, X), errors.ArgumentError).remedy, "list of functions")
    says(refusal(lambda: lax.cond(True, fnp.sin, fnp.cos, "x"), errors.DtypeError).head, "args[0]")


def test_a_branch_that_needs_a_number_names_itself():
    def needs(x):
        return x if x > 0 else -x  # the if

    message = refusal(lambda: lax.cond(True, needs, lambda x: x, 1.0), errors.ConcretizationError)
    says(message.under, "cond(needs)")
    says(message.at, line_of(needs, "# the if"))
    message = refusal(lambda: ft.jit(lambda x: lax.switch(0, [needs, needs], x))(1.0), errors.ConcretizationError)
    says(message.under, "jit(<lambda>) > switch(needs)")
