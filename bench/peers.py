"""The programs that kiln is measured against: which are here, in which version, and why others are not."""

import importlib
import importlib.metadata

# module, distribution, what it is here for, only with a GPU
KNOWN = (
    ("numpy", "numpy", "array programs for Mandelbrot and Jacobi", False),
    ("scipy", "scipy", "lombscargle; dstn for the Poisson problem", False),
    ("numba", "numba", "compiled parallel loops for Mandelbrot and Jacobi", False),
    ("astropy", "astropy", "LombScargle", False),
    ("finufft", "finufft", "the NUFFT below nifty-ls", False),
    ("nifty_ls", "nifty-ls", "Lomb-Scargle by NUFFT", False),
    ("PIL", "pillow", "PNG", False),
    ("cv2", "opencv-python-headless", "PNG; seamlessClone, a Poisson solver", False),
    ("cupy", "cupy", "array programs and raw kernels on the GPU", True),
    ("cufinufft", "cufinufft", "nifty-ls on the GPU", True),
)


class Peers:
    """Modules by name; `reason(name)` says why one is missing."""

    def __init__(self, device):
        self.modules, self.reasons, self.versions = {}, {}, {}
        self.names = [row for row in KNOWN if device == "cuda" or not row[3]]
        for module, distribution, _, _ in self.names:
            self._find(module, distribution)

    def _find(self, name, distribution):
        try:
            module = importlib.import_module(name)
            if name == "cupy":
                module.zeros(1).sum().item()
        except Exception as error:  # a broken installation raises anything
            text = str(error).strip()
            self.reasons[name] = text.splitlines()[0] if text else repr(error)
            return
        self.modules[name] = module
        version = getattr(module, "__version__", None)
        self.versions[name] = version or importlib.metadata.version(distribution)

    def get(self, name):
        return self.modules.get(name)

    def reason(self, name):
        return "missing: " + self.reasons.get(name, "only with --device cuda")

    def markdown(self):
        lines = ["| peer | version | used for |", "|---|---|---|"]
        for module, distribution, use, _ in self.names:
            version = self.versions.get(module) or f"**missing** ({self.reasons[module]})"
            lines.append(f"| {distribution} | {version} | {use} |")
        return lines
