"""Attacks on the files of runs: `python -m torture.attacks flips 400`, from the folder of tests.

    flips    one bit of any file of a run or its checkpoints: refused in a sentence, or no effect
    crashes  the end of a process before any operation on files: it resumes to the same, tidily
    kills    the same at random moments            pairs    two commands on one folder at once

One line of JSON is printed; the numbers under "bad" must all be 0.
"""

import json
import math
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from torture.commands import (
    KILLED,
    ROUTES,
    Ended,
    answer,
    copied,
    crash_before,
    end,
    fit,
    listing,
    run,
    start,
    tables,
)


class Scene:
    """A run that went well on every route, and one that was killed late in its training."""

    def __init__(self, home: Path, routes: tuple[str, ...] = ROUTES) -> None:
        self.home, self.routes = home, routes
        self.answers: dict[str, bytes | Ended] = {}
        self.operations: dict[str, int] = {}
        self.seconds: dict[str, float] = {}
        tables(home)
        for route in routes:
            whole, began = home / f"{route}-whole", time.monotonic()
            counter = home / f"{route}.count"
            ended = run(fit(route, home, whole), partial(crash_before, 10**9, whole, counter))
            if ended.code:
                raise SystemExit(f"{route}: {ended}")
            self.seconds[route] = time.monotonic() - began
            self.operations[route] = counter.stat().st_size - 1
            self.answers[route] = answer(whole, home)
            self._killed_late(route)

    def finished(self, route: str) -> Path:
        return self.home / f"{route}-whole"

    def begun(self, route: str) -> Path:
        return self.home / f"{route}-begun"

    def _killed_late(self, route: str) -> None:
        """Killed when there are as many checkpoints as there ever are."""
        count = 0.0
        for share in (0.5, 0.6, 0.7, 0.8):
            out = self.home / f"{route}-late"
            shutil.rmtree(out, ignore_errors=True)
            place = int(share * self.operations[route])
            run(fit(route, self.home, out), partial(crash_before, place, out))
            found = len(list(out.rglob("*.safetensors")))
            if found > count and not (out / "model.json").exists():
                count = found
                copied(out, self.begun(route))

    def outcome(self, route: str, out: Path) -> str:
        """What became of a run that was brought to its end, or not."""
        found = answer(out, self.home)
        if isinstance(found, Ended):
            return _refused(found)
        if found != self.answers[route]:
            return "bad: another model"
        return "the same"

    def resumed(self, route: str, out: Path) -> str:
        """The outcome after `--resume`, or after a fit where there was nothing yet."""
        ended = run(fit(route, self.home, out, "--resume"))
        if ended.code == 2 and "needs a run to continue" in ended.said:
            ended = run(fit(route, self.home, out))
        if ended.code:
            return f"bad: {ended}"
        if listing(out) != listing(self.finished(route)):
            return f"bad: left {sorted({*listing(out)} ^ {*listing(self.finished(route))})}"
        return self.outcome(route, out)


def _refused(ended: Ended) -> str:
    return "refused" if ended.code == 2 and ended.one_sentence else f"bad: {ended}"


def flips(scene: Scene, count: int, dice: random.Random) -> Iterator[str]:
    for k in range(count):
        route = scene.routes[k % len(scene.routes)]
        begun = k // len(scene.routes) % 2 == 1
        source = scene.begun(route) if begun else scene.finished(route)
        out = copied(source, scene.home / "flipped")
        files = sorted(path for path in out.rglob("*") if path.is_file() and path.stat().st_size)
        path = dice.choice(files)
        content = bytearray(path.read_bytes())
        content[dice.randrange(len(content))] ^= 1 << dice.randrange(8)
        path.write_bytes(content)
        outcome = "the same"
        if begun:
            ended = run(fit(route, scene.home, out, "--resume"))
            outcome = _refused(ended) if ended.code else "the same"
        if outcome == "the same":
            outcome = scene.outcome(route, out)
        if outcome.startswith("bad"):
            outcome += f" after {path.relative_to(out)} of {source.name}"
        yield outcome


def crashes(scene: Scene, count: int, dice: random.Random) -> Iterator[str]:
    """Before `count` operations of each route; before all of them where there are fewer."""
    for route in scene.routes:
        places = range(scene.operations[route])
        chosen = dice.sample(places, min(count, len(places)))
        for place in chosen:
            out = scene.home / "crashed"
            shutil.rmtree(out, ignore_errors=True)
            ended = run(fit(route, scene.home, out), partial(crash_before, place, out))
            outcome = scene.resumed(route, out) if ended.code == KILLED else f"bad: {ended}"
            yield outcome if outcome == "the same" else f"{outcome} at {place} of {route}"


def kills(scene: Scene, count: int, dice: random.Random) -> Iterator[str]:
    for k in range(count):
        route = scene.routes[k % len(scene.routes)]
        out = scene.home / "killed"
        shutil.rmtree(out, ignore_errors=True)
        process = start(fit(route, scene.home, out))
        time.sleep(dice.uniform(0, scene.seconds[route]))
        os.kill(process[0], signal.SIGKILL)
        end(process)
        yield scene.resumed(route, out)


def pairs(scene: Scene, count: int, dice: random.Random) -> Iterator[str]:
    """Two fits, two that resume, and one that resumes beside a report; `count` of each."""
    for k in range(count):
        route = scene.routes[k % len(scene.routes)]
        for kind in ("fits", "resumes", "fit and report"):
            out = scene.home / "shared"
            shutil.rmtree(out, ignore_errors=True)
            if kind != "fits":
                copied(scene.begun(route), out)
            first = fit(route, scene.home, out, *([] if kind == "fits" else ["--resume"]))
            second = ["report", str(out)] if kind == "fit and report" else first
            processes = [start(first), start(second)]
            ended = [end(process) for process in processes]
            won = [one for one in ended if one.code == 0]
            lost = [one for one in ended if one.code == 2 and one.one_sentence]
            outcome = scene.outcome(route, out)
            if (len(won), len(lost), outcome) != (1, 1, "the same"):
                outcome = f"bad: {ended}, {outcome}"
            yield f"{kind}: {outcome}"


ATTACKS: dict[str, Callable[[Scene, int, random.Random], Iterator[str]]] = {
    "flips": flips,
    "crashes": crashes,
    "kills": kills,
    "pairs": pairs,
}


def main(kinds: list[str], seed: int = 0) -> None:
    """Attacks by name and number: flips 400 crashes 1000 …; --routes a,b --seconds 60 of each."""
    routes = ROUTES
    seconds = math.inf
    if "--seconds" in kinds:
        seconds = float(kinds.pop(kinds.index("--seconds") + 1))
        kinds.remove("--seconds")
    if "--routes" in kinds:
        routes = tuple(kinds.pop(kinds.index("--routes") + 1).split(","))
        kinds.remove("--routes")
    with tempfile.TemporaryDirectory() as folder:
        scene = Scene(Path(folder), routes)
        for name, count in zip(kinds[::2], kinds[1::2], strict=True):
            began = time.monotonic()
            found = Counter[str]()
            for outcome in ATTACKS[name](scene, int(count), random.Random(seed)):
                found[outcome] += 1
                if time.monotonic() - began > seconds:
                    break
            bad = sum(number for outcome, number in found.items() if "bad" in outcome)
            told = {"attack": name, "bad": bad, "outcomes": dict(found)}
            told |= {"operations": scene.operations, "seconds": round(time.monotonic() - began)}
            print(json.dumps(told), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
