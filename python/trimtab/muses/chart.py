"""A figure of lines, as SVG."""

from __future__ import annotations

WIDTH, HEIGHT = 640, 360
LEFT, RIGHT, TOP, BOTTOM = 60, 20, 20, 50
COLOURS = ("#1f6feb", "#2da44e", "#bf3989", "#9a6700")
TICKS = 5


def draw(along: str, up: str, values: list[int], lines: dict[str, list[float]]) -> str:
    """Draw each of these lines over the values, whose names stand below; the axis upwards goes from 0."""
    most = max(0.1, *(max(line) for line in lines.values()))
    wide, high = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM

    def x(at: int) -> float:
        return LEFT + wide * (at + 0.5) / len(values)

    def y(value: float) -> float:
        return TOP + high * (1.0 - value / (1.1 * most))

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" '
        'font-size="12">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>',
    ]
    for tick in range(TICKS + 1):
        value = most * tick / TICKS
        parts.append(
            f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y(value):.1f}" y2="{y(value):.1f}" stroke="#ddd"/>'
            f'<text x="{LEFT - 8}" y="{y(value) + 4:.1f}" text-anchor="end">{value:.2f}</text>'
        )
    for at, value in enumerate(values):
        parts.append(f'<text x="{x(at):.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{value}</text>')
    middle = TOP + high / 2
    parts.append(f'<text x="{LEFT + wide / 2}" y="{HEIGHT - 10}" text-anchor="middle">{along}</text>')
    parts.append(
        f'<text x="14" y="{middle}" text-anchor="middle" transform="rotate(-90 14 {middle})">{up}</text>'
    )
    for number, (name, line) in enumerate(lines.items()):
        colour = COLOURS[number % len(COLOURS)]
        points = " ".join(f"{x(at):.1f},{y(value):.1f}" for at, value in enumerate(line))
        parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>')
        below = HEIGHT - BOTTOM - 14 * (len(lines) - number)
        parts.append(f'<text x="{LEFT + 12}" y="{below}" fill="{colour}">{name}</text>')
    return "\n".join([*parts, "</svg>", ""])
