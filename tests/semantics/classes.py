"""The operators that have no row of their own, by the class whose rule they keep: data for the document and the test of the table."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Class:
    """A class of operators: what holds for all of them."""

    title: str
    rule: str
    operators: str

    def names(self) -> list[str]:
        """The operators, as the table of operators names them."""
        return self.operators.split()


CLASSES = (
    Class(
        "Moving elements",
        "Elements arrive as they were, NaN, infinities and -0 included; slices are cut to what there is.",
        "broadcast_to broadcast_to_like concatenate contrib_reverse_reshape expand_dims layout_transform matrix_set_diag meshgrid"
        " nn.batch_flatten nn.batch_to_space_nd nn.depth_to_space nn.dilate nn.fifo_buffer nn.mirror_pad nn.pad"
        " nn.space_to_batch_nd nn.space_to_depth repeat reshape reshape_like reverse slice_like sliding_window split squeeze stack"
        " strided_set tile transpose trilu vision.yolo_reorg dyn.broadcast_to dyn.expand_dims dyn.nn.pad dyn.reshape dyn.squeeze"
        " dyn.strided_slice dyn.tile vm.reshape_tensor nn.sparse_transpose",
    ),
    Class(
        "Making tensors",
        "Numbers are converted to the dtype as `cast` does.",
        "arange cast_like full full_like ones ones_like zeros zeros_like dyn.full dyn.ones dyn.zeros dyn.one_hot shape_of"
        " vm.shape_of ndarray_size",
    ),
    Class(
        "Sums of products",
        "Products and sums are IEEE 754's, so that 0 · inf is NaN; the order of the terms is the target's (below); of no terms the sum is"
        " 0; integers wrap around. Padding counts as zeros, which are multiplied.",
        "nn.batch_matmul nn.matmul einsum nn.conv1d nn.conv3d nn.contrib_conv2d_NCHWc nn.contrib_depthwise_conv2d_NCHWc"
        " nn.contrib_dense_pack nn.conv2d_backward_weight nn.contrib_conv2d_gemm_weight_transform"
        " nn.contrib_conv2d_gemm_without_weight_transform nn.correlation nn.deformable_conv2d nn.sparse_dense nn.sparse_add"
        " nn.sparse_conv2d nn.bitserial_conv2d nn.bitserial_dense nn.bitpack dft stft collapse_sum_like collapse_sum_to",
    ),
    Class(
        "Products with packed weights",
        "Sums of products, as above; sums of a group are of numbers as they are stored, less the zero point times the sum of the data:"
        " an infinity makes NaN.",
        "nn.matmul_nbits",
    ),
    Class(
        "Winograd's convolutions",
        "Sums of products, as above, of transforms: a NaN or an infinity reaches whole tiles. The transforms of two dimensions leave out"
        " elements whose factor is 0; those of three multiply them.",
        "nn.contrib_conv2d_winograd_output_transform nn.contrib_conv2d_winograd_products"
        " nn.contrib_conv2d_winograd_weight_transform nn.contrib_conv2d_winograd_without_weight_transform"
        " nn.contrib_conv3d_winograd_weight_transform nn.contrib_conv3d_winograd_without_weight_transform",
    ),
    Class(
        "Transposed convolutions",
        "As `nn.conv2d_transpose`: sums of the products of data and weights; zeros between and around the data are no terms, so that an"
        " infinite weight makes NaN only of zeros that the data itself has.",
        "nn.conv1d_transpose nn.conv3d_transpose",
    ),
    Class(
        "Windows",
        "As `nn.max_pool2d`, `nn.avg_pool2d` and `nn.global_max_pool2d`: NaN goes through maxima, padding is minus infinity to them (the"
        " least integer) and not counted by means unless `count_include_pad` says so; a mean of nothing is NaN, or 0 of integers.",
        "nn.max_pool1d nn.max_pool3d nn.avg_pool1d nn.avg_pool3d nn.adaptive_avg_pool1d nn.adaptive_avg_pool3d"
        " nn.adaptive_max_pool1d nn.adaptive_max_pool3d nn.global_avg_pool1d nn.global_avg_pool3d nn.global_max_pool1d"
        " nn.global_max_pool3d nn.avg_pool2d_grad image.dilation2d",
    ),
    Class(
        "Formulas of several operations",
        "What the operations that the formula names make of the numbers; NaN goes through.",
        "nn.batch_norm nn.bias_add nn.cross_entropy_with_logits nn.dropout nn.fast_softmax nn.group_norm nn.instance_norm"
        " nn.layer_norm nn.lrn nn.prelu",
    ),
    Class(
        "Images and boxes",
        "Coordinates become integers as `cast` does, and are then kept inside of the image, or read as zero, as the operator's attributes"
        " say; a batch index is kept inside. Scores that are NaN are placed where `sort` puts them.",
        "image.affine_grid image.crop_and_resize image.grid_sample image.resize1d image.resize2d image.resize3d nn.upsampling"
        " nn.upsampling3d dyn.image.resize2d dyn.nn.upsampling dyn.nn.upsampling3d vision.all_class_non_max_suppression"
        " vision.get_valid_counts vision.multibox_prior vision.non_max_suppression vision.proposal"
        " vision.regular_non_max_suppression vision.roi_align vision.roi_pool",
    ),
    Class(
        "Quantized tensors",
        "Results are limited to the range of their dtype, as those of `qnn.quantize` and `qnn.requantize`; sums are int32 and wrap around.",
        "fixed_point_multiply_per_axis qnn.abs qnn.add qnn.avg_pool2d qnn.batch_matmul qnn.concatenate qnn.contrib_dense_pack"
        " qnn.conv2d qnn.conv2d_transpose qnn.dense qnn.dequantize qnn.erf qnn.exp qnn.hardswish qnn.leaky_relu qnn.log qnn.mul"
        " qnn.rsqrt qnn.sigmoid qnn.simulated_dequantize qnn.simulated_quantize qnn.softmax qnn.sqrt qnn.subtract qnn.tanh",
    ),
    Class(
        "Orders and places",
        "NaN is above every number, and equal to NaN; equal elements keep their order. Indices out of range: as `sparse_to_dense`. The inverse"
        " of what is not a permutation is the order in which its elements ascend. `sparse_fill_empty_rows` refuses rows that do not ascend, or"
        " are not in the tensor.",
        "argwhere unique invert_permutation dyn.topk dyn.sparse_to_dense sparse_fill_empty_rows sparse_reshape",
    ),
    Class(
        "Random numbers",
        "A key determines the bits; the numbers are finite.",
        "random.multinomial random.normal random.threefry_generate random.threefry_split random.uniform",
    ),
    Class(
        "Marks and memory",
        "The value is the argument's.",
        "annotation.bitpack_end annotation.bitpack_start annotation.cast_hint annotation.checkpoint annotation.compiler_begin"
        " annotation.compiler_end annotation.stop_fusion on_device device_copy memory.alloc_storage memory.alloc_tensor memory.kill",
    ),
)
