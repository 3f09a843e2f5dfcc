"""``python -m taxarbor.bench`` is ``taxarbor bench``."""

import sys

from taxarbor.cli import main

if __name__ == "__main__":
    sys.argv.insert(1, "bench")
    main()
