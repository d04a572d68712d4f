"""`python -m trimtab.train muses`: the stages, one after the other."""

from __future__ import annotations

import sys
import time

from safetensors import SafetensorError

from trimtab.muses import options


def main(arguments: list[str]) -> int:
    """Run the stages that the command line asks for. Gives the exit code."""
    started = time.time()
    stages = options.parse(arguments)
    try:
        # Both are large, and the command line is read without them.
        from trimtab.muses import dagger, extract, judge, lstm  # noqa: PLC0415

        stages.out.mkdir(parents=True, exist_ok=True)
        path = stages.out / "lstm.safetensors"
        learnt = distilled = None
        if stages.stage in ("lstm", "all"):
            teacher, learnt = dagger.train(stages)
            teacher.save(path)
        teacher = lstm.Teacher.load(path)
        checksum = teacher.save(path)
        teacher.save(stages.out / "muses.safetensors", whole=True)
        models = {}
        if stages.stage in ("trees", "all"):
            many, one, distilled = extract.extract(stages, teacher)
            models = {"muses": many, "treeg": one}
            for name, model in models.items():
                model.save(stages.out / f"{name}.trees")
        print(f"judging on {stages.judge} networks of each setting of Table III", flush=True)
        judged = judge.judge(stages, teacher, models)
        whole = judge.closeness(stages, teacher, lstm.Teacher.load(stages.out / "muses.safetensors"))
        text = judge.card(
            stages,
            judged,
            learnt=learnt,
            distilled=distilled,
            whole=whole,
            checksum=checksum,
            arguments=arguments,
        )
        (stages.out / "card.md").write_text(text, encoding="utf-8")
    except ModuleNotFoundError as problem:
        return _failed(f"there is no Python module {problem.name}: pip install './python[muses]'")
    except (ValueError, OSError, SafetensorError) as problem:
        return _failed(problem)
    print(text)
    print(f"the models and their card are in {stages.out}; {time.time() - started:.0f} s in all")
    return 0


def _failed(problem: object) -> int:
    print(f"error: {problem}", file=sys.stderr)
    return 2
