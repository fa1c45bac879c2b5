"""Convolutions of 3 x 3 taps as products of matrices, with transforms before and behind."""
