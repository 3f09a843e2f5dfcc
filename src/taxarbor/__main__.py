"""``python -m taxarbor`` is ``taxarbor``."""

from taxarbor.cli import main

if __name__ == "__main__":
    main()
