"""Expressions against NumPy 2: types and bytes of every operator for all pairs of types and numbers, shapes,
reductions, random trees; functions against long double, in units in the last place."""
import itertools
import os
import random
import subprocess
import sys

from daemon import need

np = need("numpy")
if int(np.__version__.split(".")[0]) < 2:  # another Python may have it: NumPy 1 has other types
    if "KILN_NUMPY2" not in os.environ and subprocess.run(
            ["env", "python3", "-c", "import numpy; assert numpy.__version__ >= '2'"],
            stderr=subprocess.DEVNULL).returncode == 0:
        os.execvpe("python3", ["python3", *sys.argv], {**os.environ, "KILN_NUMPY2": "1"})
    print(f"NumPy 2 is not here (but {np.__version__}): skipped")
    sys.exit(77)

from expressions import Evaluator, Refused, Tally

np.seterr(all="ignore")
TYPES = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64".split()
BINARY = "+ - * / // % & | ^ << >> == != < <= > >=".split()
NUMBERS = ("0 1 2 3 7 100 127 128 255 256 300 70000 2147483648 9223372036854775807 18446744073709551615 0.0 0.5 "
           "3.5 1e10 1e200 True False").split()
EVALUATE = Evaluator()


def samples(dtype, shift=0):
    """Ends of the range, zeros, signs, and for reals NaN, infinities and denormal numbers."""
    dtype = np.dtype(dtype)
    if dtype == bool:
        values = [False, True, True, False, True, False, False]
    elif dtype.kind in "iu":
        info = np.iinfo(dtype)
        values = [0, 1, 2, 3, 7, info.max, info.min, info.max - 1, info.min + 1, 5, 13, info.max // 3, 64, 8]
        values += [-1, -2, -7, -64] if dtype.kind == "i" else []
    else:
        info = np.finfo(dtype)
        values = [0.0, -0.0, 1.0, -1.0, 2.5, -3.25, 7.0, 0.1, np.nan, np.inf, -np.inf, info.max, info.min, info.tiny,
                  info.smallest_subnormal, -info.tiny / 2, 100.0, -0.7, 3.0]
    return np.roll(np.array(values, dtype), shift)


def pair(one, other):
    """Every value of one type beside every value of the other."""
    a, b = np.meshgrid(samples(one), samples(other), indexing="ij")
    return a.ravel().copy(), b.ravel().copy()


def same(got, wanted):
    """Equal types, shapes and bytes; any NaN is as good as another."""
    wanted = np.asarray(wanted)
    if got.dtype != wanted.dtype or got.shape != wanted.shape:
        return False
    if got.dtype.kind == "f":
        nan = np.isnan(wanted)
        if (np.isnan(got) != nan).any():
            return False
        got, wanted = got[~nan], wanted[~nan]
    return got.tobytes() == wanted.tobytes()


def ours(text, **arrays):
    try:
        return EVALUATE(text, **arrays)["result"]
    except Refused:
        return None


def theirs(text, **arrays):
    try:
        with np.errstate(all="ignore"):
            return np.asarray(eval(text, {"np": np, "pi": np.pi}, arrays))
    except (TypeError, OverflowError, ValueError):
        return None


def check(report, text, numpy_text=None, **arrays):
    got, wanted = ours(text, **arrays), theirs(numpy_text or text, **arrays)
    types = {name: array.dtype.name for name, array in arrays.items()}
    if got is None or wanted is None:
        report.check(got is None and wanted is None,
                     f"{text} {types}: {'refused' if got is None else got.dtype}, NumPy "
                     f"{'refuses' if wanted is None else wanted.dtype}")
        return
    good = same(got, wanted)
    detail = ""
    if not good and got.dtype == wanted.dtype and got.shape == wanted.shape:
        bad = [i for i in range(got.size) if not same(got.ravel()[i:i + 1], wanted.ravel()[i:i + 1])][:3]
        detail = "; ".join(
            f"{ {n: a.ravel()[i] for n, a in arrays.items() if a.size == got.size} } gives {got.ravel()[i]!r}, not "
            f"{wanted.ravel()[i]!r}" for i in bad)
    report.check(good, f"{text} {types}: {got.dtype}{got.shape}, NumPy {wanted.dtype}{wanted.shape} {detail}")


def operators(report):
    for one, other in itertools.product(TYPES, TYPES):
        a, b = pair(one, other)
        for sign in BINARY:
            check(report, f"a {sign} b", a=a, b=b)
        # NumPy raises for one negative exponent among many; kiln's answer to those is its own
        if np.dtype(one).kind in "iub" and np.dtype(other).kind in "iub":
            good = b.astype(object) >= 0
            check(report, "a ** b", a=a[good], b=b[good])
        for name in ("minimum", "maximum", "fmin", "fmax"):
            good = ~((a == 0) & (b == 0)) if np.result_type(a, b).kind == "f" else np.ones(a.shape, bool)
            check(report, f"{name}(a, b)", f"np.{name}(a, b)", a=a[good], b=b[good])
        check(report, "where(c, a, b)", "np.where(c, a, b)", a=a, b=b, c=np.arange(a.size) % 3 == 0)
        check(report, "a and b", "np.logical_and(a, b)", a=a, b=b)
        check(report, "a or b", "np.logical_or(a, b)", a=a, b=b)


def literals(report):
    for dtype, number in itertools.product(TYPES, NUMBERS):
        a = samples(dtype)
        for sign in BINARY:
            if dtype == "bool" and number == "18446744073709551615" and sign[0] in "=!<>" and sign not in ("<<", ">>"):
                continue  # NumPy refuses to compare these; kiln answers
            check(report, f"a {sign} {number}", a=a)
            check(report, f"{number} {sign} a", a=a)
        for name in ("minimum", "maximum"):
            if eval(number) != 0 or np.dtype(dtype).kind != "f":
                check(report, f"{name}(a, {number})", f"np.{name}(a, {number})", a=a)
        fits = np.dtype(dtype).kind != "i" and np.dtype(dtype).kind != "u" or np.can_cast(np.min_scalar_type(eval(number)), dtype)
        if eval(number) < 2**63 and (fits or isinstance(eval(number), float)):  # NumPy's where cuts the others
            check(report, f"where(a > 0, a, {number})", f"np.where(a > 0, a, {number})", a=a)
            check(report, f"where(a > 0, {number}, 0)", f"np.where(a > 0, {number}, 0)", a=a)
    for dtype in TYPES:
        a = samples(dtype)
        for number in ("0", "1", "2", "3", "5"):
            if np.dtype(dtype).kind != "f" or number in "12":
                check(report, f"a ** {number}", a=a)
        for text in ("-a", "+a", "~a", "-a**2", "a ** -1" if np.dtype(dtype).kind in "iub" else "a", "2 ** 0.5 * a",
                     "not a"):
            check(report, text, text.replace("not a", "np.logical_not(a)"), a=a)
    for text in ("7 // 2", "-7 // 2", "-7 % 3", "7 / 2", "2 ** 10", "2 ** -1", "True + True", "1 < 2", "7 & 3 == 3",
                 "1 << 40", "~5", "-2 ** 2", "2 ** 3 ** 2", "1.5 // 0.5", "0x1f + 0b11 + 0o17", "1e3", "3 if 1 > 2 else 4",
                 "not 0", "5 % -3", "-5.5 % 2", "1 + 2 * 3 - 4 / 5", "1 | 6 ^ 3 & 5", "True & False", "9 >> 1 << 2"):
        check(report, text)


def unary(report):
    same_as_numpy = "floor ceil trunc rint abs sign isnan isinf isfinite sqrt".split()
    for dtype in TYPES:
        for name in same_as_numpy:
            check(report, f"{name}(a)", f"np.{name}(a)", a=samples(dtype))
        for other in TYPES:
            a = samples(dtype)
            if np.dtype(other).kind in "iu" and np.dtype(dtype).kind == "f":
                info = np.iinfo(other)
                wide = a.astype("f8")  # others are cut to the ends, where C has no answer
                a = a[np.isfinite(a) & (wide > float(info.min) - 1) & (wide < float(info.max) / 2)]
            name = {"bool": "bool"}.get(other, other)
            check(report, f"{name}(a)", f"a.astype('{other}')", a=a)
    ends = EVALUATE("x = int8(a); y = uint16(a); z = int64(a); b = bool(a)",
                    a=np.array([np.nan, np.inf, -np.inf, 1e30, -1e30, 127.9, -128.9, 128.0, -0.9]))
    report.check(ends["x"].tolist() == [0, 127, -128, 127, -128, 127, -128, 127, 0], f"cast to int8: {ends['x']}")
    report.check(ends["y"].tolist() == [0, 65535, 0, 65535, 0, 127, 0, 128, 0], f"cast to uint16: {ends['y']}")
    top, low = 2**63 - 1, -2**63
    report.check(ends["z"].tolist() == [0, top, low, top, low, 127, -128, 128, 0], f"cast to int64: {ends['z']}")
    report.check(ends["b"].tolist() == [True] * 9, f"cast to bool: {ends['b']}")
    powers = EVALUATE("a ** b", a=np.array([0, 1, -1, -1, 2, -5], "i4"), b=np.array([-1, -3, -2, -3, -1, -2], "i4"))
    report.check(powers["result"].tolist() == [0, 1, 1, -1, 0, 0], f"negative powers: {powers}")
    foreign = np.array([0, 1, 2, 255], "u1").view(bool)
    report.check(EVALUATE("a & True", a=foreign)["result"].tolist() == [False, True, True, True], "foreign bools")


# Longest error in units in the last place, by type; what is asked, and the functions of long double.
FUNCTIONS = ("exp exp2 expm1 log log2 log10 log1p sin cos tan sinh cosh tanh cbrt arcsin arccos arctan arcsinh "
             "arccosh arctanh").split()


def ulps(got, exact):
    """How far values are from exact ones, in units of the last place of the exact value's type."""
    with np.errstate(all="ignore"):
        nearest = exact.astype(got.dtype)
        wrong = (np.isnan(got) != np.isnan(nearest)) | (np.isinf(got) != np.isinf(nearest))
        unit = np.maximum(np.spacing(np.abs(nearest)), np.finfo(got.dtype).smallest_subnormal)
        error = np.abs(got.astype(np.longdouble) - exact) / unit.astype(np.longdouble)
    special = ~np.isfinite(nearest) | ~np.isfinite(got)
    error = np.where(special, np.where(wrong & (np.abs(exact) < np.finfo(got.dtype).max), np.inf, 0), error)
    return error.astype(float)


def arguments(name, dtype, random_):
    low, high = {"exp": (-110, 95), "exp2": (-155, 130), "expm1": (-60, 95), "sinh": (-95, 95), "cosh": (-95, 95),
                 "arcsin": (-1, 1), "arccos": (-1, 1), "arctanh": (-1, 1)}.get(name, (-50, 50))
    x = [random_.uniform(low, high, 200_000), random_.normal(size=50_000) * 1e-3,
         np.ldexp(random_.uniform(-2, 2, 200_000), random_.integers(-140, 120, 200_000)), 1 + random_.normal(size=50_000) * 1e-4,
         np.arange(-300, 300) / 4.0, [0.0, -0.0, np.inf, -np.inf, np.nan, 2.0**20, -(2.0**20), 1e30, 3.4e38, 1e-45, -1e-45]]
    return np.concatenate(x).astype(dtype)


def functions(report):
    if np.finfo(np.longdouble).nmant < 60:
        report.note("long double is double here: functions are not measured")
        return
    random_ = np.random.default_rng(5)
    worst = {}
    for name, dtype in itertools.product(FUNCTIONS, ("float32", "float64")):
        x = arguments(name, dtype, random_)
        exact = getattr(np, name)(x.astype(np.longdouble))
        got = ours(f"{name}(x)", x=x)
        error = ulps(got, exact)
        limit = 0.51 if dtype == "float32" else 4
        at = int(np.argmax(error))
        worst[name, dtype] = error[at]
        report.check(error[at] <= limit, f"{name}({x[at]!r}) = {got[at]!r}, {error[at]:.3f} ulp from {exact[at]!r}")
        signs = np.signbit(got) == np.signbit(exact.astype(dtype))
        report.check((signs | np.isnan(exact.astype(dtype)) | (got != 0)).all(), f"{name} of {dtype}: signs of zeros")
    for name, numpy_name in (("hypot", "hypot"), ("arctan2", "arctan2"), ("pow", "power"), ("copysign", "copysign")):
        for dtype in ("float32", "float64"):
            x, y = random_.normal(size=(2, 100_000)) * 10 ** random_.uniform(-3, 3, (2, 100_000))
            x, y = (np.abs(x) if name == "pow" else x).astype(dtype), (y / 100 if name == "pow" else y).astype(dtype)
            exact = getattr(np, numpy_name)(x.astype(np.longdouble), y.astype(np.longdouble))
            error = ulps(ours(f"{name}(x, y)", x=x, y=y), exact)
            report.check(error.max() <= (0.51 if dtype == "float32" else 4), f"{name} of {dtype}: {error.max():.3f} ulp")
            worst[name, dtype] = error.max()
    for dtype in TYPES:  # types alone
        for name in FUNCTIONS + ["hypot"]:
            call = f"{name}(a, a)" if name == "hypot" else f"{name}(a)"
            got, wanted = ours(call, a=samples(dtype)), theirs(f"np.{call}", a=samples(dtype))
            report.check(got is not None and got.dtype == wanted.dtype, f"{call} of {dtype}: {got.dtype}, {wanted.dtype}")
    report.note("worst errors in ulp: " + ", ".join(f"{n} {e:.2f} / {worst[n, 'float64']:.2f}"
                                                    for (n, t), e in worst.items() if t == "float32"))


def shapes(report):
    random_ = np.random.default_rng(6)
    cases = [((3, 4), (4,)), ((3, 1), (1, 4)), ((2, 3, 4), (3, 1)), ((1,), (5, 6)), ((), (7,)), ((0, 3), (3,)), ((0,), ()),
             ((5, 1, 7, 1), (6, 1, 8)), ((1000, 3), (3,)), ((1000, 3), (1000, 1)), ((300, 700), (700,)),
             ((300, 700), (300, 1)), ((2, 1, 2, 1, 2, 1, 2), (2, 1, 2, 1, 2, 1)), ((40, 50, 60), (50, 1)), ((5000,), (1,)),
             ((3, 4), (5,)), ((2, 3), (3, 2))]
    for one, other in cases:
        a, b = random_.normal(size=one), random_.normal(size=other)
        check(report, "a * b + a", a=a, b=b)
        check(report, "(a + 1) * (b - 1)", a=a, b=b)
        check(report, "(a - b) * a", a=a.T, b=b.T)
    a = random_.integers(-50, 50, (37, 41, 23)).astype("i2")
    for view in (a, a.T, a.transpose(1, 0, 2), a.transpose(2, 0, 1), a[::2], a[:, ::3, ::2], a[:, :, :1], a[1:, 5:, 7:],
                 np.broadcast_to(a[:, :1, :], (37, 9, 23)), np.asfortranarray(a)):
        check(report, "a * 3 - 1", a=view)
        check(report, "a + b", a=view, b=view[:, :1])


def reductions(report):
    random_ = np.random.default_rng(7)
    names = {"sum": "sum", "prod": "prod", "min": "min", "max": "max", "any": "any", "all": "all", "mean": "mean"}
    for dtype, shape in itertools.product(TYPES, [(7,), (5, 3), (4, 5, 6), (2000, 3), (3, 2000), (130, 140), (2, 9, 3, 8)]):
        a = random_.integers(0, 3, shape).astype(dtype) if dtype != "bool" else random_.random(shape) < 0.97
        axes = [None, *range(-1, a.ndim)] + ([(0, 1), (-1, 0)] if a.ndim > 1 else [])
        for (name, theirs_), axis, keep in itertools.product(names.items(), axes, (False, True)):
            call = f"axis={axis}, keepdims={keep}"
            wanted = np.asarray(getattr(np, theirs_)(a, axis=axis, keepdims=keep))
            got = ours(f"{name}(a, {call})", a=a)
            good = got is not None and got.dtype == wanted.dtype and got.shape == wanted.shape
            if good and (dtype.startswith("float") and name in ("sum", "prod", "mean") or name == "mean"):
                with np.errstate(all="ignore"):
                    good = np.allclose(got.astype("f8"), wanted.astype("f8"), rtol=2e-3 if dtype == "float16" else 1e-6,
                                       equal_nan=True)
            elif good:
                good = same(got, wanted)
            report.check(good, f"{name}({dtype}{shape}, {call})")
        for name, axis in itertools.product(("argmin", "argmax"), [None, *range(a.ndim)]):
            check(report, f"{name}(a, axis={axis})", f"np.{name}(a, axis={axis})", a=a)
    a = random_.normal(size=(50_000,))
    a[[7, 40_000]] = np.nan
    for name in ("min", "max", "argmin", "argmax", "sum"):
        check(report, f"{name}(a)", f"np.{name}(a)", a=a)
    for shape in ((0,), (0, 4), (4, 0)):
        for text in ("sum(a)", "prod(a, axis=0)", "any(a)", "all(a)", "sum(a, axis=-1)", "min(a)", "argmax(a)"):
            check(report, text, "np." + text, a=np.zeros(shape, "f4"))
    big = random_.normal(size=3_000_000).astype("f4")
    exact = big.astype("f8").sum()
    report.check(abs(float(ours("sum(a)", a=big)) - exact) <= 1e-6 * np.abs(big).sum(), "sum of 3 million floats")


def tree(a):
    """The sum of a row by the fixed tree, in the row's type."""
    chunks = []
    for first in range(0, len(a), 4096):
        lanes = np.full(16, -0.0, a.dtype)
        chunk = a[first:first + 4096]
        for i in range(0, len(chunk), 16):
            piece = chunk[i:i + 16]
            lanes[:len(piece)] += piece
        for half in (8, 4, 2, 1):
            lanes = lanes[:half] + lanes[half:2 * half]
        chunks.append(lanes[0])
    while len(chunks) > 1:
        joined = [chunks[i] + chunks[i + 1] for i in range(0, len(chunks) - 1, 2)]
        chunks = joined + ([chunks[-1]] if len(chunks) % 2 else [])
    return chunks[0]


def trees(report):
    """The bytes of sums: the tree that kernels/expression.h fixes, along and across, on one thread and more."""
    random_ = np.random.default_rng(8)
    one = Evaluator(threads=1)
    for dtype, length in itertools.product(("f4", "f8"), (1, 15, 16, 17, 100, 1023, 4096, 4097, 9000, 20_000)):
        a = random_.normal(size=(length, 11)).astype(dtype)
        wanted = np.array([tree(np.ascontiguousarray(a[:, k])) for k in range(11)])
        for view, axis in ((a, 0), (np.ascontiguousarray(a.T), 1), (np.asfortranarray(a), 0)):
            for evaluate in (EVALUATE, one):
                got = evaluate(f"sum(a, axis={axis})", a=view)["result"]
                report.check(got.tobytes() == wanted.tobytes(), f"the sum's tree, {dtype}, {length} along {axis}")
    one.close()


def tree_text(depth, names):
    if depth == 0 or random.random() < 0.1:
        return random.choice([*names, *names, *names, str(random.randint(0, 9)), f"{random.random():.3f}", "True"])
    kind = random.random()
    left, right = tree_text(depth - 1, names), tree_text(depth - 1, names)
    if kind < 0.6:
        return f"({left} {random.choice(['+', '-', '*', '/', '//', '%', '<', '==', '&', '|'])} {right})"
    if kind < 0.75:
        return f"np.where({left} > {right}, {left}, {right})"
    if kind < 0.85:
        return f"np.{random.choice(['minimum', 'maximum'])}({left}, {right})"
    return f"(-{left})" if kind < 0.9 else f"np.{random.choice(['abs', 'floor', 'isnan', 'sqrt'])}({left})"


def random_trees(report):
    random.seed(9)
    random_ = np.random.default_rng(9)
    taken = 0
    for _ in range(3000):
        arrays = {}
        for name in "abc":
            dtype = random.choice(TYPES)
            shape = random.choice([(40,), (3, 40), (3, 1), (), (2, 3, 40)])
            a = random_.integers(1, 50, shape)
            arrays[name] = (a % 2 == 0) if dtype == "bool" else (a + (0.5 if dtype.startswith("f") else 0)).astype(dtype)
            arrays[name] = np.asarray(arrays[name])
        text = tree_text(random.randint(1, 6), list("abc"))
        if len(text) > 3900 or text.count("(") > 120:
            continue
        try:
            with np.errstate(all="ignore"):
                wanted = np.asarray(eval(text, {"np": np}, arrays))
        except (TypeError, OverflowError, ValueError, ZeroDivisionError):
            wanted = None
        # a NumPy scalar among 0-d results is no array to it; compare what arrays give
        got = ours(text.replace("np.", ""), **arrays)
        if wanted is None or got is None:
            continue
        taken += 1
        types = {n: (a.dtype.name, a.shape) for n, a in arrays.items()}
        report.check(same(got, wanted), f"{text} {types}: {got.dtype}{got.shape} {got.ravel()[:4]}, NumPy {wanted.dtype}"
                                        f"{wanted.shape} {wanted.ravel()[:4]}")
    report.check(taken > 1000, f"only {taken} random trees were taken by both")


def statements(report):
    a, b = np.arange(6, dtype="f4").reshape(2, 3), np.array([1, 2, 3], "i2")
    got = EVALUATE("a += 3; y = a * 2; y -= 1", a=a)
    report.check(same(got["a"], a + 3) and same(got["y"], (a + 3) * 2 - 1), "in place, then a name")
    for text in ("b += a", "b /= 2", "b += 1.5", "u -= b", "a += c", "b <<= 1.0"):
        try:
            EVALUATE(text, a=a, b=b, u=np.zeros(3, "u2"), c=np.zeros((4, 2, 3), "f4"))
            report.check(False, f"{text} was taken")
        except Refused as refused:
            report.check(refused.args[0] == 3, f"{text}: column {refused.args}")
    got = EVALUATE("m = mean(a, axis=0); d = a - m; z = d / sqrt(mean(d**2, axis=0))", a=a)
    report.check(same(got["z"], (a - a.mean(0)) / np.sqrt(np.mean((a - a.mean(0))**2, axis=0))), "standard scores")
    got = ours("index(0) * shape(1) + index(1)", a=a)
    report.check(same(got, np.arange(6).reshape(2, 3)), f"index and shape: {got}")
    for text, column in (("a +", 4), ("a < b < c", 7), ("a b", 3), ("sqr(a)", 1), ("a + zz", 5), ("(a", 3), ("a[0]", 2), ("1j", 1),
                         ("a.T", 2), ("sum(a, axis=5)", 1), ("sum(a, axes=0)", 8), ("def = 3", 1), ("a; a", 4), ("-(a > 1)", 2),
                         ("a if a", 7), ("int8(300)", 6), ("b + 70000", 5), ("b ** -1", 6), ("sqrt(a, a)", 1), ("sqrt", 1)):
        try:
            EVALUATE(text, a=a, b=b, c=b)
            report.check(False, f"{text} was taken")
        except Refused as refused:
            report.check(refused.args[0] == column, f"{text}: column {refused.args[0]}, not {column}: {refused.args[1]}")


def main():
    report = Tally()
    for part in (operators, literals, unary, functions, shapes, reductions, trees, random_trees, statements):
        report.begin(part.__name__)
        part(report)
    EVALUATE.close()
    report.finish()


main()
