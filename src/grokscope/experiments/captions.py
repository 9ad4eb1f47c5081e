"""What stands below a figure: a description, the exact settings, and the runs."""

from textwrap import fill

from grokscope.experiments.evidence import Evidence
from grokscope.experiments.experiment import Experiment
from grokscope.extension import is_reference
from grokscope.spec import RunSpec
from grokscope.sweeps.diagram import PhaseDiagram


def command(experiment: Experiment, evidence: Evidence) -> str:
    """The command that makes this figure again with the same runs, inferring cells if they were inferred."""
    diagrams = map(evidence.diagram, experiment.needs(evidence.scale).diagrams)
    inferred = any(sum(cell.counts.values()) > cell.runs for diagram in diagrams for cell in diagram.all_cells())
    refine = " --refine" if inferred else ""
    return f"grokscope figure {experiment.file or experiment.name}{evidence.scale.flags()}{refine}"


def caption(experiment: Experiment, evidence: Evidence, command: str) -> str:
    """The caption as plain text."""
    needs = experiment.needs(evidence.scale)
    parts = [f"{experiment.name}: {experiment.title}", description(experiment)]
    if specs := needs.specs(evidence.scale):
        lines = [f"  {spec.run_id}  {settings(spec)}" for spec in specs]
        parts.append("\n".join(["Networks, and what differs from the defaults:", *lines]))
    for plan in needs.diagrams:
        parts.append(_diagram_lines(evidence.diagram(plan)))
    if experiment.file and needs.reduced(evidence.scale):
        parts.append(f"Note: {reduction(evidence.scale.name)}")
    parts.append(f"Defaults: {_all_settings(RunSpec())}")
    parts.append(f"Made with: {command}")
    return "\n\n".join(parts) + "\n"


def description(experiment: Experiment) -> str:
    """What the figure shows, in lines."""
    return fill(experiment.caption, 100)


def reduction(scale: str) -> str:
    """What is to be known about a user's figure that a scale has made smaller.

    >>> reduction("tiny")
    'the scale tiny trains smaller networks or fewer cells than the file says; --scale paper trains what it says.'
    """
    less = "smaller networks or fewer cells than the file says"
    return f"the scale {scale} trains {less}; --scale paper trains what it says."


def settings(spec: RunSpec, *, short: bool = False) -> str:
    """The fields that differ from their defaults; of a user's own class all, since its defaults stand nowhere else.

    In short, a user's class describes itself, without its file and its source.
    """
    parts = []
    for name in type(spec).model_fields:
        section = getattr(spec, name)
        own = is_reference(getattr(section, "kind", ""))
        if own and short:
            parts.append(section.describe())
        else:
            parts += _fields(name, section.model_dump(mode="json", exclude_defaults=not own))
    return ", ".join(parts) or "the default setting"


def _all_settings(spec: RunSpec) -> str:
    content = spec.model_dump(mode="json", exclude_none=True)
    return ", ".join(field for name, fields in content.items() for field in _fields(name, fields))


def _fields(section: str, fields: dict[str, object]) -> list[str]:
    return [f"{section}.{name} = {value}" for name, value in fields.items()]


def _diagram_lines(diagram: PhaseDiagram) -> str:
    plan = diagram.plan
    cells = list(diagram.all_cells())
    runs, inferred = sum(cell.runs for cell in cells), sum(cell.source == "inferred" for cell in cells)
    lines = [
        f"Sweep {plan.name}: {runs} runs in {len(cells)} cells, of which {inferred} are inferred from those around"
    ]
    lines.append(f"  {settings(plan.base)}")
    for axis in plan.axes:
        values = [point[0] if len(point) == 1 else point for point in axis.points]
        lines.append(f"  {', '.join(axis.fields)}: {', '.join(map(str, values))}")
    lines += [f"  {path} = {formula}" for path, formula in plan.derived.items()]
    lines.append("  The run ids of every cell are in the .csv beside this file.")
    return "\n".join(lines)
