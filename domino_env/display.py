"""What an environment shows of its table: text, a picture, or a window that stays open.

Modules that draw are loaded when something is drawn, so training needs no pygame.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np

RENDER_MODES = ("human", "ansi", "rgb_array")


class Display:
    """Draws games in one of RENDER_MODES, and keeps the window of `human`, opened when first used.

    A copy, or one that was pickled, has no window until it draws.
    """

    def __init__(self, fps: float) -> None:
        self.fps = fps
        self._window: Any = None

    def __getstate__(self) -> dict[str, Any]:
        return {"fps": self.fps, "_window": None}

    def draw(
        self, mode: str, games: np.recarray, viewer: int, shown: Collection[int]
    ) -> str | np.ndarray | None:
        """`games[0]` from the seat `viewer`, the hands of `shown` face up.

        Text for `ansi`, uint8 [H, W, 3] for `rgb_array`; None for `human`, which is shown.
        """
        from domino_env.render import table_text
        from domino_env.table import table_of

        table = table_of(games[0], viewer, shown)
        if mode == "ansi":
            return table_text(table)
        from domino_env.picture import Window, table_image

        image = table_image(table)
        if mode == "rgb_array":
            return image
        if self._window is None:
            self._window = Window(fps=self.fps)
        self._window.show(image)
        return None

    def close(self) -> None:
        """Close the window, if one is open."""
        if self._window is not None:
            self._window.close()
            self._window = None
