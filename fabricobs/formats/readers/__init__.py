"""The whole-file readers by the name a definition gives."""

from fabricobs.formats.readers.allocations import read_allocations
from fabricobs.formats.readers.counter_records import read_counter_records
from fabricobs.formats.readers.flight_recorder import read_flight_recorder
from fabricobs.formats.readers.kineto import read_kineto
from fabricobs.formats.readers.mlflow import read_mlflow
from fabricobs.formats.readers.mlflow_db import read_mlflow_db
from fabricobs.formats.readers.nccl_trace import read_nccl_trace
from fabricobs.formats.readers.ndtimeline import read_ndtimeline
from fabricobs.formats.readers.py_spy import read_py_spy
from fabricobs.formats.readers.rank_hosts import read_rank_hosts
from fabricobs.formats.readers.tensorboard import read_tensorboard
from fabricobs.formats.readers.wandb_csv import read_wandb_csv
from fabricobs.formats.whole import Reader

READERS: dict[str, Reader] = {
    "allocations": read_allocations,
    "counter_records": read_counter_records,
    "flight_recorder": read_flight_recorder,
    "kineto": read_kineto,
    "mlflow": read_mlflow,
    "mlflow_db": read_mlflow_db,
    "nccl_trace": read_nccl_trace,
    "ndtimeline": read_ndtimeline,
    "py_spy": read_py_spy,
    "rank_hosts": read_rank_hosts,
    "tensorboard": read_tensorboard,
    "wandb_csv": read_wandb_csv,
}
