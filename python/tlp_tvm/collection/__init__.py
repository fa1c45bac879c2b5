"""Collecting measured programs: networks -> tasks -> programs -> records, for days if need be."""

from tlp_tvm.collection.collect_observer import CollectObserver
from tlp_tvm.collection.collect_settings import CollectResult, CollectSettings
from tlp_tvm.collection.collecting import collect

__all__ = ["CollectObserver", "CollectResult", "CollectSettings", "collect"]
