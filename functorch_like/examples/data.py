"""The handwritten digits of scikit-learn: 1797 images of 8 by 8 pixels, split once and for all by a seed."""

from __future__ import annotations

import importlib.util
from typing import NamedTuple

import numpy as np

#: Images that are never trained on.
HELD_OUT = 360


class MissingScikitLearn(ImportError):
    """The digits come with scikit-learn, which this package does not require."""

    def __init__(self) -> None:
        super().__init__(
            "The handwritten digits come with scikit-learn, which is not installed here. Install it with\n\n"
            '    python -m pip install "scikit-learn>=1.5"\n\n'
            "or together with functorch_like as the extra functorch_like[digits], and run this again."
        )


class Digits(NamedTuple):
    """Images as float32 of shape (n, 8, 8, 1) between 0 and 1, labels as int32."""

    train_images: np.ndarray
    train_labels: np.ndarray
    test_images: np.ndarray
    test_labels: np.ndarray


def is_available() -> bool:
    """Return True if scikit-learn can be found; it is not imported."""
    return importlib.util.find_spec("sklearn") is not None


def load(seed: int = 0, held_out: int = HELD_OUT) -> Digits:
    """Load the digits and hold some out.

    Args:
        seed: decides which images are held out.
        held_out: how many.

    Raises:
        MissingScikitLearn: where scikit-learn is not installed; its text gives the command.
    """
    try:
        from sklearn.datasets import load_digits
    except ModuleNotFoundError as e:
        if (e.name or "").partition(".")[0] != "sklearn":
            raise
        raise MissingScikitLearn from None
    pixels, labels = load_digits(return_X_y=True)
    order = np.random.default_rng(seed).permutation(len(labels))
    images = (np.asarray(pixels).reshape(-1, 8, 8, 1) / 16).astype(np.float32)[order]
    labels = np.asarray(labels, np.int32)[order]
    return Digits(images[held_out:], labels[held_out:], images[:held_out], labels[:held_out])
