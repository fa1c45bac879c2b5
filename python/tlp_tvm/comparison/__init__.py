"""One search under several cost models in turns, so that the machine's noise affects all alike."""

from tlp_tvm.comparison.compare_settings import CompareObserver, CompareSettings
from tlp_tvm.comparison.comparing import compare
from tlp_tvm.comparison.summary import Comparison, read_comparison

__all__ = ["CompareObserver", "CompareSettings", "Comparison", "compare", "read_comparison"]
