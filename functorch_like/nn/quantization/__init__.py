"""Quantised weights: int8 and packed int4, products of int8 with int8, and fake quantisation for training."""
