# Arrays of all dtypes, orders, strides and sizes, masked and structured ones too.
import numpy as np
import ray

ray.init(num_cpus=1, include_dashboard=False)
arrays = {
    "fortran": np.asfortranarray(np.arange(6).reshape(2, 3)),
    "strided": np.arange(10)[::3],
    "reversed": np.arange(5)[::-1],
    "empty": np.zeros((0, 3)),
    "scalar": np.array(5),
    "bool": np.array([True, False]),
    "text": np.array(["ab", "c"]),
    "object": np.array([1, "a", None], dtype=object),
    "struct": np.array([(1, 2.5)], dtype=[("a", "i4"), ("b", "f8")]),
    "date": np.array(["2020-01-01"], dtype="datetime64[D]"),
    "big": np.array([1], dtype=">i4"),
    "masked": np.ma.array([1, 2], mask=[0, 1]),
    "f16": np.array([1.5], dtype="f2"),
    "complex": np.array([1 + 2j]),
}
for name, array in arrays.items():
    back = ray.get(ray.put(array))
    print(
        name,
        back.dtype.str,
        back.shape,
        back.tolist() == array.tolist(),
        type(back).__name__,
        back.flags.f_contiguous,
    )
