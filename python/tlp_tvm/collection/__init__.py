"""Collecting measured programs: networks -> tasks -> programs -> records, for days if need be."""

from tlp_tvm.collection.collecting import collect
from tlp_tvm.collection.observer import CollectObserver
from tlp_tvm.collection.settings import CollectResult, CollectSettings

__all__ = ["CollectObserver", "CollectResult", "CollectSettings", "collect"]
