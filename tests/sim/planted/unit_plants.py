"""Wrong decisions in cores that no simulation runs, each with the unit test that finds it."""

from plant import (
    NOT_RUN,
    WORKER,
    WORKER_TEST,
    Plant,
)

UNIT_PLANTS = [
    Plant(
        "locality",
        "an argument that a task has twice counts twice",
        WORKER + "locality.cc",
        "args.erase(std::unique(args.begin(), args.end()), args.end());",
        elsewhere=NOT_RUN,
        unit=(WORKER_TEST, "LocalityTest.AnArgumentThatOccursTwiceCountsOnce"),
    ),
    Plant(
        "locality",
        "a task may come back to a store that can never hold its arguments",
        WORKER + "locality.cc",
        "places.total <= store_bytes",
        "true",
        elsewhere=NOT_RUN,
        unit=(WORKER_TEST, "LocalityTest.WhatCanNeverBeHereTogetherRunsOnlyElsewhere"),
    ),
    Plant(
        "value_codec",
        "a damaged value may name a buffer beyond its end",
        WORKER + "value_codec.cc",
        "entry[1] > encoded.size() - entry[0]",
        "false",
        elsewhere=NOT_RUN,
        unit=(WORKER_TEST, "ValueCodec.DamagedHeadersStayInBounds"),
    ),
    Plant(
        "runtime_env",
        "the variables of a task replace all those of its job",
        WORKER + "runtime_env.cc",
        "merged[name].update(value);",
        "merged[name] = value;",
        elsewhere=NOT_RUN,
        unit=(WORKER_TEST, "RuntimeEnv.VariablesAreMerged"),
    ),
]
