"""`tlp-tvm dataset`: build datasets from records, check them and describe them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tlp_tvm.cli.parts.common import (
    JsonOption,
    console,
    one_sentence_errors,
    print_json,
    print_table,
    progress_console,
)
from tlp_tvm.cli.parts.dataset_building import Near, Split, build_progress, print_manifest, rule_of

app = typer.Typer(
    help="Build, import, check and describe datasets of measured programs.", no_args_is_help=True
)


Out = Annotated[Path, typer.Option("--out", help="The folder to write.")]
SplitOption = Annotated[
    Split | None,
    typer.Option("--split", help="keep: the source's split; family: by network; task: by task, at random."),
]
TestOption = Annotated[
    list[str] | None,
    typer.Option(
        "--test",
        help="With --split family: a test network, architecture or family. Repeatable. "
        "Default: the networks that this project holds out.",
    ),
]
TestShareOption = Annotated[
    float, typer.Option("--test-share", min=0.0, max=0.9, help="With --split task: share of test programs.")
]
ValidationOption = Annotated[
    float, typer.Option("--validation-share", min=0.0, max=0.9, help="Share of validation programs.")
]
SeedOption = Annotated[
    int, typer.Option("--seed", min=0, help="Seed of the random choice of tasks, families or programs.")
]
NearOption = Annotated[
    Near | None,
    typer.Option(
        "--near-duplicates",
        help="Whether tasks with the same operator graph at other batch or image sizes stay in one split. "
        "Default: together with --split task, apart with --split family.",
    ),
]
ThinOption = Annotated[
    int | None,
    typer.Option(
        "--programs-per-task",
        min=1,
        help="At most this many programs per task and platform, drawn at random; test tasks keep all.",
    ),
]
ReplaceOption = Annotated[
    bool, typer.Option("--replace", help="Replace a dataset at --out once the new one is complete.")
]


@app.callback()
def dataset() -> None:
    """Build, import, check and describe datasets of measured programs."""


@app.command()
@one_sentence_errors
def build(
    sources: Annotated[
        list[Path],
        typer.Argument(
            metavar="SOURCE...",
            help="Dataset folders, record files or folders of them; NAME=PATH names the platform of records.",
        ),
    ],
    out: Out,
    platform: Annotated[
        str | None,
        typer.Option(help="Platform of record files given without NAME=. Default: their target."),
    ] = None,
    split: SplitOption = None,
    test: TestOption = None,
    test_share: TestShareOption = 0.1,
    validation_share: ValidationOption = 0.1,
    seed: SeedOption = 0,
    near_duplicates: NearOption = None,
    programs_per_task: ThinOption = None,
    skip_bad_lines: Annotated[
        bool, typer.Option("--skip-bad-lines", help="Skip and count lines that are not records.")
    ] = False,
    odd_targets: Annotated[
        bool,
        typer.Option(
            "--odd-targets", help="Accept records of a platform that name several targets; the first counts."
        ),
    ] = False,
    replace: ReplaceOption = False,
) -> None:
    """Turn measure records into a dataset that opens at once, whatever its size.

    Each program is kept once, with its latencies on every platform. --out appears when the dataset is
    complete; after an interruption, run the same command again.

    Example: tlp-tvm dataset build datasets/epyc --out datasets/epyc.built --split task
    """
    from tlp_tvm.dataset.building.build import build_dataset

    rule = rule_of(split, test, test_share, validation_share, seed, near_duplicates)
    with build_progress() as progress:
        manifest = build_dataset(
            list(sources),
            out,
            platform=platform,
            allow_odd_targets=odd_targets,
            split=rule,
            programs_per_task=programs_per_task,
            seed=seed,
            errors="skip" if skip_bad_lines else "raise",
            replace=replace,
            progress=progress,
        )
    print_manifest(manifest, out)


@app.command("import-tenset")
@one_sentence_errors
def import_tenset(
    tree: Annotated[Path, typer.Argument(help="The folder with measure_records/ and network_info/.")],
    out: Out,
    trust_pickle: Annotated[
        bool,
        typer.Option("--trust-pickle", help="Read network_info/*.task.pkl, which assign tasks to networks."),
    ] = False,
    split: SplitOption = None,
    test: TestOption = None,
    test_share: TestShareOption = 0.1,
    validation_share: ValidationOption = 0.1,
    seed: SeedOption = 0,
    near_duplicates: NearOption = None,
    programs_per_task: ThinOption = None,
    replace: ReplaceOption = False,
) -> None:
    """Turn a TenSet or TenSet-TLP tree into a dataset; damaged lines are skipped and counted.

    With --trust-pickle, the split is the published one (test: ResNet-50, MobileNet-V2, ResNeXt-50, BERT-base
    and BERT-tiny) unless another is named.

    Example: tlp-tvm dataset import-tenset scripts/dataset_cpu --out tenset-cpu --trust-pickle
    """
    from tlp_tvm.dataset.building.build import build_from
    from tlp_tvm.dataset.building.tenset import published_split, tenset_source

    source = tenset_source(tree, trust_pickle=trust_pickle)
    rule = rule_of(split, test, test_share, validation_share, seed, near_duplicates)
    with build_progress() as progress:
        manifest = build_from(
            [source],
            out,
            split=rule or published_split(source),
            programs_per_task=programs_per_task,
            seed=seed,
            errors="skip",
            replace=replace,
            allow_odd_targets=True,
            progress=progress,
        )
    print_manifest(manifest, out)


@app.command()
@one_sentence_errors
def stats(
    dataset: Annotated[Path, typer.Argument(help="What `dataset build` wrote.")],
    layout: Annotated[
        list[str] | None,
        typer.Option(
            help="A preset layout or a file. Repeatable. Default: paper-cpu and ansor, or metaschedule."
        ),
    ] = None,
    html: Annotated[Path | None, typer.Option(help="Also write a page with plots to this file.")] = None,
    tasks: Annotated[int, typer.Option(min=0, help="Tasks to print, the largest first.")] = 10,
    as_json: JsonOption = False,
) -> None:
    """Describe a dataset: programs, collisions, spread, noise, failures, lengths, cuts.

    Example: tlp-tvm dataset stats datasets/epyc.built --html stats.html
    """
    from rich.progress import track

    from tlp_tvm.dataset import open_dataset
    from tlp_tvm.dataset.statistics.counting import DatasetStatistics
    from tlp_tvm.dataset.statistics.statistics_summary import summary_of
    from tlp_tvm.dataset.statistics.statistics_tables import statistics_tables
    from tlp_tvm.files import write_whole
    from tlp_tvm.framework import framework_named
    from tlp_tvm.layout import PRESETS, FeatureLayout
    from tlp_tvm.records.detect import check_layout

    opened = open_dataset(dataset)
    layouts = [
        FeatureLayout.preset(name) if name in PRESETS else FeatureLayout.load(name)
        for name in layout or framework_named(opened.manifest.framework).layouts
    ]
    for each in layouts:
        check_layout(each, opened.manifest.framework, str(dataset))
    statistics = DatasetStatistics(opened, layouts)
    shards = range(len(opened.manifest.shards))
    for i in track(shards, "reading", console=progress_console, transient=True):
        statistics.add_shard(i)
    told = summary_of(statistics)
    if html is not None:
        from tlp_tvm.pages.statistics_page import statistics_page

        write_whole(html, statistics_page(statistics))
        progress_console.print(f"wrote {html}")
    if as_json:
        print_json(told)
        return
    for table in statistics_tables(told, tasks):
        print_table(table)


@app.command()
@one_sentence_errors
def pack(folder: Annotated[Path, typer.Argument(help="A dataset folder that `collect` wrote.")]) -> None:
    """Compress the records of a collection, one file per task; `collect` can still resume it.

    Example: tlp-tvm dataset pack data/mine
    """
    from tlp_tvm.collection.packing import pack as pack_folder

    before, after = pack_folder(folder)
    console.print(f"{folder}: {before / 1e6:.1f} MB packed, {after / 1e6:.1f} MB now")


@app.command()
@one_sentence_errors
def verify(dataset: Annotated[Path, typer.Argument(help="What `dataset build` wrote.")]) -> None:
    """Check every byte of a dataset against its checksums.

    Example: tlp-tvm dataset verify datasets/epyc.built
    """
    from rich.progress import Progress as Bar

    from tlp_tvm.dataset import open_dataset

    opened = open_dataset(dataset)
    with Bar(console=progress_console, transient=True) as bar:
        reading = bar.add_task("verifying", total=sum(shard.bytes for shard in opened.manifest.shards))
        opened.verify(lambda count: bar.advance(reading, count))
    console.print(f"{dataset}: {len(opened):,} programs, all checksums match")
