"""Ray Data is not in this release: using one of its names raises an error that names it.

Importing them succeeds, unlike the other names of _private/absent.py, because packages import some
that few of their programs use: without `from_pandas_refs`, Modin could not be imported. Modules
below this one cannot be imported, so that a package that tests for ray.data.dataset does without.
"""

from __future__ import annotations

from typing import Any, NoReturn

from ray._private.absent import absent_attribute, not_in_release, raise_missing

_CLASSES = """
ActorPoolStrategy BlockBasedFileDatasink Catalog CatalogAccessMode ClickHouseTableSettings
DataContext DataIterator DatabricksUnityCatalog Dataset DatasetContext DatasetIterator
DatasetSummary Datasink Datasource ExecutionOptions ExecutionResources FileShuffleConfig
KafkaAuthConfig MixStoppingCondition NodeIdStr Preprocessor RandomSeedConfig ReadTask
ReaderFormat ResolvedSource RowBasedFileDatasink SaveMode Schema SinkMode TaskPoolStrategy
""".split()
_FUNCTIONS = """
from_arrow from_arrow_refs from_blocks from_daft from_dask from_huggingface from_items from_mars
from_modin from_numpy from_numpy_refs from_pandas from_pandas_refs from_spark from_tf from_torch
list_stats_summaries range range_tensor read_audio read_avro read_binary_files read_clickhouse
read_csv read_datasource read_delta read_delta_sharing_tables read_hudi read_iceberg read_images
read_json read_kafka read_lance read_lerobot read_mcap read_mongo read_numpy read_orc
read_parquet read_snowflake read_sql read_text read_tfrecords read_unity_catalog read_videos
read_webdataset read_zarr
""".split()


class _AbsentClass(type):
    """The type of classes that have no instances and no attributes."""

    def __call__(cls, *args: Any, **options: Any) -> NoReturn:
        raise not_in_release(cls._public_name())

    def __getattr__(cls, name: str) -> NoReturn:
        raise absent_attribute(f"{cls._public_name()}.{name}")

    def _public_name(cls) -> str:
        # A class that a program derives is absent because of its base.
        return f"ray.data.{next(c.__name__ for c in cls.__mro__ if c.__module__ == __name__)}"


def _absent_function(name: str):
    def raise_absent(*args: Any, **options: Any) -> NoReturn:
        raise not_in_release(f"ray.data.{name}")

    raise_absent.__name__ = raise_absent.__qualname__ = name
    return raise_absent


def __getattr__(name: str) -> Any:
    if name in _CLASSES:
        value: Any = _AbsentClass(name, (), {"__module__": __name__})
    elif name in _FUNCTIONS:
        value = _absent_function(name)
    else:
        raise_missing("ray.data", name)
    globals()[name] = value
    return value
