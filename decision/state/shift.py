"""Moving a stretch of an array within it, as fast as the machine can."""

from typing import Any

from numba.core import cgutils, types
from numba.extending import intrinsic
from numba.np.arrayobj import make_array


@intrinsic
def shift(_context: Any, array: Any, begin: Any, end: Any, by: Any) -> Any:
    """Move ``array[begin:end]`` by so many places; nothing where it is empty.

    One memmove. A loop over two arrays at once is compiled to moves of single elements, ten times slower.
    """

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kind = signature.args[0]
        begin, end, by = args[1:]
        data = make_array(kind)(context, builder, value=args[0]).data
        source = builder.gep(data, [begin])
        target = builder.gep(data, [builder.add(begin, by)])
        count = builder.sub(end, begin)
        with builder.if_then(builder.icmp_signed(">", count, count.type(0))):
            itemsize = context.get_abi_sizeof(context.get_data_type(kind.dtype))
            cgutils.raw_memmove(builder, target, source, count, itemsize)
        return context.get_dummy_value()

    return types.none(array, types.int64, types.int64, types.int64), generate
