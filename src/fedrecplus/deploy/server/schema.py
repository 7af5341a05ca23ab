"""What a server keeps in its database. Nothing in it is readable that a person uploaded in the clear.

``answers`` are sealed to a key in the coordinator's memory; what is left of them are sums: a run's checkpoint and,
while a secure sum is being unmasked, its masked total. Times are seconds since 1970.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Float,
    ForeignKey,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
)

metadata = MetaData()
_Number = BigInteger().with_variant(Integer, "sqlite")
"""SQLite counts up INTEGER primary keys alone"""

nodes = Table(
    "nodes", metadata,
    Column("number", BigInteger, primary_key=True, autoincrement=False),
    Column("key", String(64), nullable=False, unique=True),  # Ed25519, in hexadecimal
    Column("name", Text, nullable=False),
    Column("expelled", Boolean, nullable=False),
    Column("admitted_at", Float, nullable=False),
)  # fmt: skip
invitations = Table(
    "invitations", metadata,
    Column("code", String(64), primary_key=True),  # SHA-256 of it
    Column("name", Text, nullable=False),
    Column("until", Float, nullable=False),
    Column("key", String(64)),  # whose it became
)  # fmt: skip
workers = Table(
    "workers", metadata,
    Column("name", String(64), primary_key=True),
    Column("at", Float, nullable=False),
    Column("present", LargeBinary, nullable=False),  # numbers of nodes that wait on it
    Column("counters", Text, nullable=False),
)  # fmt: skip
leases = Table(
    "leases", metadata,
    Column("name", String(32), primary_key=True),
    Column("holder", String(64), nullable=False),
    Column("number", BigInteger, nullable=False),  # goes up with every holder: what an earlier one writes is refused
    Column("until", Float, nullable=False),
)  # fmt: skip
objects = Table(
    "objects", metadata,
    Column("digest", String(64), primary_key=True),
    Column("content", LargeBinary, nullable=False),
    Column("until", Float),  # none: for good
)  # fmt: skip
runs = Table(
    "runs", metadata,
    Column("id", _Number, primary_key=True),
    Column("model", String(32), nullable=False),
    Column("config", Text, nullable=False),
    Column("deployment", Text, nullable=False),
    Column("data", Text, nullable=False),
    Column("catalogue", LargeBinary, nullable=False),
    Column("phase", String(16), nullable=False, index=True),
    Column("stop", Boolean, nullable=False),
    Column("progress", Text, nullable=False),
    Column("checkpoint", LargeBinary),
    Column("pending", LargeBinary),  # a secure sum before its last exchange
    Column("told", LargeBinary),  # the last round's sum, which the next one tells
    Column("begun_at", Float, nullable=False),
)  # fmt: skip
journal = Table(
    "journal", metadata,
    Column("run", _Number, ForeignKey("runs.id"), primary_key=True),
    Column("round", Integer, primary_key=True),
    Column("line", Text, nullable=False),
    Column("metrics", Text, nullable=False),
)  # fmt: skip
ledger = Table(
    "ledger", metadata,
    Column("number", _Number, primary_key=True),
    Column("model", String(32), nullable=False, index=True),
    Column("line", Text, nullable=False),
)  # fmt: skip
log = Table(
    "log", metadata,
    Column("task", String(64), primary_key=True),  # its digest
    Column("number", Integer, primary_key=True),
    Column("leaf", Text, nullable=False),
    Column("sum", String(64), index=True),  # the object with the sum that it names, while that is kept
)  # fmt: skip
signing_keys = Table(
    "signing_keys", metadata,
    Column("name", String(32), primary_key=True),
    Column("content", LargeBinary, nullable=False),  # Ed25519, private
)  # fmt: skip
work = Table(
    "work", metadata,
    Column("id", _Number, primary_key=True),
    Column("run", _Number, ForeignKey("runs.id"), nullable=False),
    Column("node", BigInteger, ForeignKey("nodes.number"), nullable=False),
    Column("round", Integer, nullable=False),
    Column("stage", String(16), nullable=False),
    Column("attempt", String(48), nullable=False),  # a secure sum's session; who asks, and how often
    Column("question", LargeBinary, nullable=False),
    Column("until", Float, nullable=False),
    UniqueConstraint("node", "run", "round", "stage", "attempt"),
)  # fmt: skip
answers = Table(
    "answers", metadata,
    Column("work", _Number, ForeignKey("work.id", ondelete="CASCADE"), primary_key=True, autoincrement=False),
    Column("content", LargeBinary, nullable=False),  # sealed
    Column("at", Float, nullable=False),
)  # fmt: skip
models = Table(
    "models", metadata,
    Column("number", Integer, primary_key=True),
    Column("digest", String(64), ForeignKey("objects.digest"), nullable=False, unique=True),
    Column("facts", Text, nullable=False),
    Column("current", Boolean, nullable=False),
)  # fmt: skip
