"""Every reason for which a node of an ONNX model cannot be imported, with the model that meets it and the text of the error."""

from __future__ import annotations

from typing import Any

import mirstack
import pytest
from extras import library

pytestmark = pytest.mark.extra
onnx = library("onnx", "onnx")


def parsed(inputs: str, nodes: str, opset: int = 21, outputs: str = "float y") -> Any:
    """Returns a model in ONNX' text syntax, whose last node is called 'n'."""
    opsets = f'"": {opset}, "com.microsoft": 1, "ai.onnx.ml": 3'
    model = onnx.parser.parse_model(
        f"<ir_version: 10, opset_import: [{opsets}]> g ({inputs}) => ({outputs}) {{ {nodes} }}"
    )
    model.graph.node[-1].name = "n"
    return model


def errors(model: Any, **options: Any) -> list[str]:
    """Returns the lines of the error that importing a model raises."""
    with pytest.raises(mirstack.MirError) as error:
        mirstack.from_onnx(model, **options)
    return str(error.value).splitlines()


# opset, inputs, nodes, what the error says of the last node
REFUSED: list[tuple[int, str, str, str]] = [
    # Operators and their inputs
    (21, "float[2] x", "y = Reluu (x)", "Reluu: there is no operator Reluu in opset 21; did you mean Relu?"),
    (21, "float[2] x", "y = Zzz (x)", "Zzz: there is no operator Zzz in opset 21"),
    (21, "float[2,3] x", "y = com.microsoft.QuickGeluu (x)",
     "QuickGeluu: there is no operator com.microsoft.QuickGeluu in opset 1; did you mean com.microsoft.QuickGelu?"),
    (16, "float[2,3] x", "y = GroupNormalization <num_groups = 1> (x, x, x)",
     "GroupNormalization: GroupNormalization is supported from opset 18 on, and the model imports opset 16"),
    (21, "float[2,3] x", "y = ai.onnx.ml.Normalizer (x)", "Normalizer: ai.onnx.ml.Normalizer is not supported"),
    (21, "float[2] x", "y = Gelu (z)", "Gelu: input 'z' is not computed by any node before this one"),
    (21, "float[2] x", "y = GatherND (x)", "GatherND: input 1 is missing"),
    (21, "float[2] x", "s = SequenceConstruct (x) y = Flatten (s)", "Flatten: input 0 is not a tensor"),
    (21, "float[2] x", "y = SequenceAt (x, x)", "SequenceAt: input 0 is not a sequence"),
    (21, "float[2] x", "y, z = Flatten (x)", "Flatten: output 'z' is not computed"),
    (21, "float[2] x, int64[1] a", "y = Unsqueeze (x, a) z = Slice (x, a, a, a, a) n = SequenceErase (z)",
     "SequenceErase: input 0 is not a sequence"),
    (21, "float[2] x", "y = Hardmax <axis = 3> (x)", "Hardmax: axis 3 is outside of a tensor of rank 1"),
    # Constants and random numbers
    (21, "", 'y = Constant <value_string = "a"> ()', "Constant: tensors of strings are not supported"),
    (21, "", "y = Constant ()", "Constant: it has no attribute that is its value"),
    (21, "float[2] x", "y = Cast <to = 8> (x)", "Cast: tensors of STRING are not supported"),
    (21, "float[2] x", "y = StringNormalizer (x)", "StringNormalizer: tensors of strings are not supported"),
    (21, "float[2] x", 'y = TfIdfVectorizer <max_gram_length = 1, max_skip_count = 0, min_gram_length = 1, mode = "TF", '
     'ngram_counts = [0], ngram_indexes = [0], pool_strings = ["a"]> (x)', "TfIdfVectorizer: tensors of strings are not supported"),
    (21, "", "a = Constant <value_int = 0> () y = Range (a, a, a)", "Range: the step of a range must not be 0"),
    (21, "float[2,3,4] x", "y = EyeLike (x)", "EyeLike: the input is of rank 3, not a matrix"),
    (21, "float[2] x", "y = Bernoulli (x)", "Bernoulli: it draws numbers at random, and has no seed"),
    (21, "float[n] x", "y = Bernoulli <seed = 1.0> (x)",
     "Bernoulli: the number of random numbers must be known: a size of the result is open"),
    (21, "float[n,3] x", "y = Multinomial <seed = 1.0> (x)",
     "Multinomial: the number of random numbers must be known: a size of the result is open"),
    (21, "", "y = RandomNormal <shape = [2], seed = 1.0, dtype = 8> ()",
     "RandomNormal: dtype is 8, which tensors cannot have"),
    (21, "float[2] x",
     "r = Constant <value_float = 0.5> () t = Constant <value = bool {1}> () y = Dropout (x, r, t)",
     "Dropout: training_mode drops elements at random"),
    (21, "float[2] x, bool t, float r", "y = Dropout (x, r, t)",
     "Dropout: training_mode must be constant, not computed at run time"),
    # Images
    (21, "float[1,1,4,4] x", "y = Resize (x)", "Resize: it needs one of the inputs scales and sizes"),
    (21, "float[1,1,4,4] x, float[4] s", 'y = Resize <mode = "sharp"> (x, , s)',
     "Resize: mode is 'sharp'; it must be nearest, linear, bilinear, trilinear or cubic"),
    (21, "float[1,1,4,4] x, float[4] s", 'y = Resize <coordinate_transformation_mode = "half"> (x, , s)',
     "Resize: coordinate_transformation_mode is 'half'; it must be half_pixel, half_pixel_symmetric, "
     "pytorch_half_pixel, align_corners, asymmetric, tf_half_pixel_for_nn or tf_crop_and_resize"),
    (21, "float[1,1,4,4] x, float[4] s", 'y = Resize <nearest_mode = "up"> (x, , s)',
     "Resize: nearest_mode is 'up'; it must be round_prefer_floor, round_prefer_ceil, floor or ceil"),
    (21, "float[1,1,4,4] x, int64[4] s", 'y = Resize <keep_aspect_ratio_policy = "larger"> (x, , , s)',
     "Resize: keep_aspect_ratio_policy is 'larger'; it must be stretch, not_larger or not_smaller"),
    (21, "float[1,2,3] x, int64[3] s", "y = AffineGrid (x, s)", "AffineGrid: size has 3 numbers; it must have 4 or 5"),
    (21, "uint8[9] x", "y = ImageDecoder (x)", "ImageDecoder: decoding files of images is not supported"),
    # Indices
    (21, "float[4] x", "i = Constant <value_ints = [1, 4]> () y = Gather (x, i)",
     "Gather: an index is outside of axis 0, which has 4 elements"),
    (21, "float[4] x, int64[2,n] i", "y = GatherND (x, i)",
     "GatherND: the last dimension of the indices must be known, not open"),
    (21, "float[4] x, int64[2] i, float[2] u", 'y = ScatterElements <reduction = "xor"> (x, i, u)',
     "ScatterElements: reduction is 'xor'; it must be none, add, mul, max or min"),
    (21, "int64[4] x, int64 d, float[2] v", "y = OneHot <axis = 3> (x, d, v)",
     "OneHot: axis 3 is outside of a tensor of rank 2"),
    (21, "float[2,0] x", "y = Unique <axis = 1> (x)", "Unique: axis 1 has no elements"),
    # Convolutions and pooling
    (21, "float[2,3] x, float[4,3] w", "y = Conv (x, w)", "Conv: the data has rank 2; it must have rank 3 to 5"),
    (21, "float[1,3,8,8] x, float[4,3,3,3] w", "y = Conv <strides = [1]> (x, w)",
     "Conv: strides, dilations and pads must fit 2 spatial axes"),
    (21, "float[1,3,8] x, float[4,3,3] w", "y = Conv <pads = [1]> (x, w)",
     "Conv: strides, dilations and pads must fit 1 spatial axis"),
    (21, "float[1,3,8,8] x, float[4,3,k,k] w", "y = Conv (x, w)",
     "Conv: the window must be of a known size: the weight has open sizes, and kernel_shape is left out"),
    (21, "float[1,3,8,8] x, float[4,3,3,3] w", 'y = Conv <auto_pad = "SAME"> (x, w)',
     "Conv: auto_pad is 'SAME'; it must be NOTSET, SAME_UPPER, SAME_LOWER or VALID"),
    (21, "float[1,3,n] x, float[3,4,3] w", "y = ConvTranspose <output_shape = [9]> (x, w)",
     "ConvTranspose: output_shape needs data of known sizes, not open ones"),
    (22, "float[1,3,8] x, float[4,3,3] w, float[1,3,6] o", "y = DeformConv (x, w, o)",
     "DeformConv: the data must have rank 4: two spatial axes"),
    (22, "float[1,c,8,8] x, float[4,c,3,3] w, float[1,18,6,6] o, float[1,9,6,6] m", "y = DeformConv <kernel_shape = [3, 3]> (x, w, o, , m)",
     "DeformConv: with a mask the number of channels must be known, not open"),
    (27, "float[1,3,8] x, float[3,1,k] w", "y = CausalConvWithState (x, w)",
     "CausalConvWithState: the shape of the weight must be known, not open"),
    (21, "float[1,3,8,8] x", "y = MaxPool <kernel_shape = [2]> (x)",
     "MaxPool: kernel_shape must have a number for each spatial axis"),
    (21, "float[1,3,n] x", 'y, z = MaxPool <kernel_shape = [3], strides = [2], auto_pad = "SAME_UPPER"> (x)',
     "MaxPool: indices are not supported where auto_pad depends on open sizes"),
    # Normalizations and losses
    (21, "float[3] x, float[3] s", "y = BatchNormalization (x, s, s, s, s)",
     "BatchNormalization: the data must have an axis of channels: rank 2 or more"),
    (9, "float[2,3] x, float[3] s", "y, a, b, c, d = BatchNormalization (x, s, s, s, s)",
     "BatchNormalization: training is supported from opset 14 on, with 3 outputs"),
    (18, "float[2,c,4] x, float[2] s", "y = GroupNormalization <num_groups = 2> (x, s, s)",
     "GroupNormalization: before opset 21 the number of channels must be known, not open"),
    (21, "float[2,3] x, int64[2] t", 'y = SoftmaxCrossEntropyLoss <reduction = "max"> (x, t)',
     "SoftmaxCrossEntropyLoss: reduction is 'max'; it must be mean, sum or none"),
    (21, "float[2,3] x", "y = LpNormalization <p = 3> (x)", "LpNormalization: p is 3; it must be 1 or 2"),
    (21, "float[n,n] x", "y = Det (x)", "Det: its matrices must be square, of a known size"),
    # Attention and recurrent layers
    (23, "float[1,4,8] x", "y = Attention (x, x, x)",
     "Attention: inputs of rank 3 need the attributes q_num_heads and kv_num_heads"),
    (23, "float[1,2,4,d] x", "y = Attention (x, x, x)",
     "Attention: the size of heads must be known: the attribute scale is left out"),
    (23, "float[1,3,4,8] x, float[1,2,4,8] k", "y = Attention (x, k, k)",
     "Attention: 3 heads of queries cannot share 2 heads of keys"),
    (23, "float[1,4,8] x, float[1,4,2] c", "y = RotaryEmbedding (x, c, c)",
     "RotaryEmbedding: an input of rank 3 needs the attribute num_heads"),
    (23, "float[1,2,4,d] x, float[1,4,2] c", "y = RotaryEmbedding (x, c, c)",
     "RotaryEmbedding: the size of heads must be known, not open"),
    (27, "float[1,4,8] x", "y, z = LinearAttention <q_num_heads = 3, kv_num_heads = 2> (x, x, x)",
     "LinearAttention: 3 heads of queries cannot share 2 heads of keys"),
    (27, "float[1,4,8] x", 'y, z = LinearAttention <q_num_heads = 2, kv_num_heads = 2, update_rule = "sum"> (x, x, x)',
     "LinearAttention: update_rule is 'sum'; it must be linear, gated, delta or gated_delta"),
    (27, "float[1,4,d] x", 'y, z = LinearAttention <q_num_heads = 2, kv_num_heads = 2, update_rule = "linear"> (x, x, x)',
     "LinearAttention: the size of heads must be known, not open"),
    (21, "float[5,2,3] x, float[1,4,3] w, float[1,4,4] r", 'y = RNN <direction = "backward"> (x, w, r)',
     "RNN: direction is 'backward'; it must be forward, reverse or bidirectional"),
    (21, "float[5,2,3] x, float[1,h,3] w, float[1,h,h] r", "y = RNN (x, w, r)",
     "RNN: the hidden size must be known, not open"),
    (21, "float[5,2,3] x, float[1,16,3] w, float[1,16,4] r", 'y = LSTM <activations = ["Tanh"]> (x, w, r)',
     "LSTM: 1 activation; there must be 3"),
    (21, "float[5,2,3] x, float[1,4,3] w, float[1,4,4] r", 'y = RNN <activations = ["Tann"]> (x, w, r)',
     "RNN: there is no activation Tann; did you mean 'tanh'?"),
    # Operators of com.microsoft
    (21, "float[2,4] x, float[4] s",
     "w = Constant <value = uint8[1,2,1] {1, 2}> () g = Constant <value = int32[4] {0, 0, 0, 1}> () "
     "y = com.microsoft.MatMulNBits <K = 4, N = 1, bits = 4, block_size = 2> (x, w, s, , g)",
     "MatMulNBits: g_idx must name each of the 2 groups for 2 columns"),
    (21, "float[2,5,8] x", "y = com.microsoft.MultiHeadAttention <num_heads = 2> (x)",
     "MultiHeadAttention: without keys the queries must be packed with keys and values, of rank 5"),
    (21, "float[2,5,8] x", "y = com.microsoft.MultiHeadAttention <num_heads = 2> (x, x)",
     "MultiHeadAttention: without values the keys must be packed with them, of rank 5"),
    (21, "float[2,5,8] x, int32 n", "y = com.microsoft.MultiHeadAttention <num_heads = 2> (x, x, x, , , , , , n)",
     "MultiHeadAttention: the input past_sequence_length is not supported"),
    (21, "float[2,5,8] x, float[8,24] w, float[24] b, int32[7] m", "y = com.microsoft.Attention <num_heads = 2> (x, w, b, m)",
     "Attention: a mask of 7 numbers for a batch of 2 is not supported"),
    (21, "float[2,5,8] x, float[8,24] w", "y = com.microsoft.Attention <num_heads = 2, do_rotary = 1> (x, w)",
     "Attention: do_rotary is 1, and only 0 is supported"),
    (21, "uint8[4,8] x, int64[2] i, float[4,1] s",
     "y = com.microsoft.GatherBlockQuantized <gather_axis = 1, quantize_axis = 1, block_size = 16> (x, i, s)",
     "GatherBlockQuantized: rows along the axis of packed numbers are not supported"),
    (21, "uint8[4,n] x, int64[2] i, float[4,1] s", "y = com.microsoft.GatherBlockQuantized <bits = 8> (x, i, s)",
     "GatherBlockQuantized: the quantized axis must have a known size, not an open one"),
    (21, "float[2,1,4] x, float[1] s, int8[1,16] z",
     f"w = Constant <value = int8[1,4,16] {{{'0,' * 63}0}}> () k = Constant <value = int8[1,16] {{{'0,' * 15}1}}> () "
     "y = com.microsoft.DynamicQuantizeLSTM (x, w, w, , , , , , s, k, s, k)",
     "DynamicQuantizeLSTM: zero points that differ in the channels of a weight are not supported"),
    (21, "float[2,5,8] x, float[8,n] w", "y = com.microsoft.Attention <num_heads = 2> (x, w)",
     "Attention: the size of the weights must be known, not open"),
    (21, "float[2,5,n] x, int64[2,5] p, float[9,4] c", "y = com.microsoft.RotaryEmbedding (x, p, c, c)",
     "RotaryEmbedding: an input of an open hidden size needs the attribute num_heads"),
    (21, "float[2,5,n] x, int32[2] l, int32 t",
     "y = com.microsoft.GroupQueryAttention <num_heads = 2, kv_num_heads = 2> (x, , , , , l, t)",
     "GroupQueryAttention: the size of packed queries, keys and values must be known, not open"),
    (21, "float[2,5,24] x, int32[2] l, int32 t",
     "y = com.microsoft.GroupQueryAttention <num_heads = 2, kv_num_heads = 2, smooth_softmax = 1> (x, , , , , l, t)",
     "GroupQueryAttention: smooth_softmax is not supported"),
    (21, "float[2,5,8] x", "y = com.microsoft.PackedAttention <num_heads = 2> (x)",
     "PackedAttention: tokens of several sequences that are packed into one are not supported"),
    (21, "int32[2,5] x", "y = com.microsoft.GreedySearch (x)", "GreedySearch: a search runs a whole decoder many times"),
    (21, "float[2,5,8] x", "y = com.microsoft.MoE (x)",
     "MoE: layers of experts, which are chosen for each token, are not supported"),
    (21, "float[2,5,8] x", "y = com.microsoft.DecoderMaskedMultiHeadAttention <num_heads = 2> (x)",
     "DecoderMaskedMultiHeadAttention: a buffer of keys that several beams share is not supported"),
    (21, "float[2,5,8] x", "y = com.microsoft.Tokenizer (x)", "Tokenizer: tensors of strings are not supported"),
    (21, "float[2,16,8,8] x", "y = com.microsoft.nchwc.ReorderOutput (x)",
     "ReorderOutput: it is written for one processor's layout in memory"),
    # Quantized operators
    (21, "float[4,4] x, float[2,2] s, int8[2,2] z", "y = QuantizeLinear (x, s, z)",
     "QuantizeLinear: a scale of several dimensions needs the attribute block_size"),
    (21, "float[4] x, float s", "y = QuantizeLinear <output_dtype = 7> (x, s)",
     "QuantizeLinear: tensors cannot be quantized to int64"),
    (21, "float[4] x, float s", "y = QuantizeLinear <output_dtype = 8> (x, s)",
     "QuantizeLinear: output_dtype is 8, which tensors cannot have"),
    (21, "uint8[1,3,8,8] x, uint8[4,3,k,k] w", "y = ConvInteger (x, w)",
     "ConvInteger: the window must be of a known size: the weight has open sizes, and kernel_shape is left out"),
    # Reductions
    (21, "float[2,3] x, int64[n] a", "y = ReduceSum (x, a)", "ReduceSum: the number of axes must be known, not open"),
    (21, "float[2,3] x", "a = Constant <value_int = 2> () y = CumSum (x, a)",
     "CumSum: axis 2 is outside of a tensor of rank 2"),
    # Sequences and optionals
    (21, "float[2] x", "s = SequenceConstruct (x, x) a = Constant <value_int = 2> () y = SequenceAt (s, a)",
     "SequenceAt: position 2 is outside of a sequence of 2 tensors"),
    (21, "float[2] x, float[3] z, int64 a", "s = SequenceConstruct (x, z) y = SequenceAt (s, a)",
     "SequenceAt: the position must be constant, not computed at run time: the tensors differ in type"),
    (21, "float[2] x, int64 a", "s = SequenceEmpty () y = SequenceAt (s, a)", "SequenceAt: the sequence is empty"),
    (21, "float[2] x, int64 a", "s = SequenceConstruct (x) y = SequenceErase (s, a)",
     "SequenceErase: the position must be constant, not computed at run time"),
    (21, "float[2] x", "s = SequenceEmpty () y = SequenceErase (s)", "SequenceErase: the sequence is empty"),
    (21, "float[2] x", "s = SequenceEmpty () y = ConcatFromSequence <axis = 0> (s)",
     "ConcatFromSequence: the sequence is empty"),
    (21, "float[n] x", "a = Constant <value_int = 2> () y = SplitToSequence (x, a)",
     "SplitToSequence: axis 0, which is split, must have a known size, not an open one"),
    (21, "float[4] x", "a = Constant <value_int = 0> () y = SplitToSequence (x, a)",
     "SplitToSequence: the size of the parts is 0; it must be 1 or more"),
    (21, "float[2] x", "s = SequenceConstruct (x, x) t = SequenceConstruct (x) "
     "y = SequenceMap <body = b (float[2] c, float[2] d) => (float[2] e) { e = Add (c, d) }> (s, t)",
     "SequenceMap: the sequences have 2 and 1 tensors; they must have the same number"),
    (21, "float[2] x", "o = Optional <type = float[2]> () y = OptionalGetElement (o)",
     "OptionalGetElement: the optional is empty"),
    (21, "float[2] x", "s = SequenceConstruct (x) "
     "y = SequenceMap <body = b (float[2] c) => (float[2] e) { e = SequenceConstruct (c) }> (s)",
     "SequenceMap: an input or an output is a sequence or an optional; it must be a tensor"),
    # Control flow
    (21, "float[2] x, bool c",
     "y = If <then_branch = a () => (float[2] p) { p = Identity (x) }, "
     "else_branch = b () => (float[2] q) { q = SequenceConstruct (x) }> (c)",
     "If: one branch returns another kind of value than the other: a tensor, a sequence of some length, or an optional"),
    (21, "float[2] x, bool c",
     "y = If <then_branch = a () => (float p) { p = Flatten (x) }, "
     "else_branch = b () => (float q) { q = Identity (x) }> (c)",
     "If: output 0 has rank 2 in one branch and rank 1 in the other"),
    (21, "float[2] x, bool c",
     "y = If <then_branch = a () => (float p) { z = Identity (x) }, "
     "else_branch = b () => (float q) { q = Identity (x) }> (c)",
     "If: output 'p' of the graph inside it cannot be computed"),
    (21, "float[2] x, bool c",
     "y = If <then_branch = a () => (float p) { p = Cast <to = 7> (x) }, "
     "else_branch = b () => (float q) { q = Identity (x) }> (c)",
     "If: output 0 has different dtypes in the branches"),
    (21, "float[2] x, int64 m, bool c", "s = SequenceEmpty () "
     "y = Loop <body = b (int64 i, bool k, float[2] t) => (bool k2, float[2] t2) "
     "{ k2 = Identity (k) t2 = Identity (t) }> (m, c, s)",
     "Loop: a sequence that stays empty is carried through a loop"),
    (21, "float[2] x, int64 m, bool c", "s = Optional <type = float[2]> () "
     "y = Loop <body = b (int64 i, bool k, optional(float[2]) t) => (bool k2, optional(float[2]) t2) "
     "{ k2 = Identity (k) t2 = Optional (t) }> (m, c, s)",
     "Loop: an optional is carried through a loop whose number of iterations is known only at run time"),
    (21, "float[2] x, int64 m, bool c", "s = SequenceEmpty () "
     "y = Loop <body = b (int64 i, bool k, float[2] t) => (bool k2, float[2] t2) "
     "{ k2 = Identity (k) t2 = Neg (x) }> (m, c, s)",
     "Loop: an iteration or a branch returns something else in the place of a sequence"),
    (21, "float[2] x, int64 m, bool c", "z = Flatten (x) s = SequenceConstruct (x, z) "
     "y = Loop <body = b (int64 i, bool k, float[2] t) => (bool k2, float[2] t2) "
     "{ k2 = Identity (k) t2 = SequenceInsert (t, x) }> (m, c, s)",
     "Loop: the length of a sequence is known only at run time, and its tensors must then be of one rank and dtype"),
    (21, "float[2,n] x, bool c",
     "y = If <then_branch = a () => (seq(float[2,n]) p) { p = SequenceEmpty () }, "
     "else_branch = b () => (seq(float[2,n]) q) { q = SequenceConstruct (x) }> (c)",
     "If: a sequence is empty in one branch, and in the other its tensors are of open sizes"),
    (21, "float[2] x, int64 m, bool c",
     "y = Loop <body = b (int64 i, bool k, float t) => (bool k2, float t2) { k2 = Identity (k) t2 = Flatten (t) }> (m, c, x)",
     "Loop: an iteration changes the rank or the dtype of a value that it carries"),
    (8, "float[2,3] x, int64[2] l",
     "y = Scan <num_scan_inputs = 1, body = b (float t) => (float u) { u = Identity (t) }> (l, x)",
     "Scan: sequence_lens, lengths that differ in a batch, is not supported"),
    (8, "float[n,3] x", "y = Scan <num_scan_inputs = 1, body = b (float t) => (float u) { u = Identity (t) }> (, x)",
     "Scan: the size of the batch must be known, not open"),
    # Shapes
    (21, "float[2,3] x", "a = Constant <value_ints = [0, -2]> () y = Squeeze (x, a)",
     "Squeeze: the axes [0, -2] name an axis twice"),
    (21, "float[2,3] x", "a = Constant <value_ints = [2]> () y = Squeeze (x, a)",
     "Squeeze: axis 2 is outside of a tensor of rank 2"),
    (21, "float[1,n] x", "y = Squeeze (x)", "Squeeze: without axes every dimension must be known, not open"),
    (21, "float[2,3] x, int64[n] a", "y = Unsqueeze (x, a)", "Unsqueeze: the number of axes must be known, not open"),
    (21, "float[2,3] x", "y = Flatten <axis = 3> (x)", "Flatten: axis 3 is outside of a tensor of rank 2"),
    (21, "float[4] x", "a = Constant <value_ints = [1, 2]> () y, z = Split (x, a)",
     "Split: the parts have 3 elements along axis 0, and the data has 4"),
    (21, "float[4] x", "a = Constant <value_ints = [5, -1]> () y, z = Split (x, a)",
     "Split: a part of axis 0 would have a negative size"),
    (21, "float[4] x", "a = Constant <value_ints = [0]> () s = Constant <value_ints = [0]> () y = Slice (x, a, a, a, s)",
     "Slice: a step of a slice must not be 0"),
    (9, "float[4,4] x", "y = Slice <starts = [0], ends = [1, 2]> (x)",
     "Slice: 1 axis, 1 start, 2 ends, 1 step: there must be as many of each"),
    (21, "float[4] x", "a = Constant <value_ints = [1]> () y = Pad (x, a)",
     "Pad: 1 pad for 1 axis; there must be 2"),
    (9, "float[4] x", "y = Pad <pads = [1, 1, 1]> (x)", "Pad: 3 pads for 1 axis; there must be 2"),
    (21, "float[4] x, int64[2] p", 'y = Pad <mode = "mirror"> (x, p)',
     "Pad: mode is 'mirror'; it must be constant, reflect, edge or wrap"),
    (21, "float[4] x", "p = Constant <value_ints = [1, 1]> () y = Pad <mode = \"mirror\"> (x, p)",
     "Pad: mode is 'mirror'; it must be constant, reflect, edge or wrap"),
    # Signals
    (21, "float[2,n] x, int64 a", "y = DFT (x, , a)",
     "DFT: with an axis that is computed the last dimension must be known, not open"),
    (21, "float[2,4,3] x", "y = DFT (x)",
     "DFT: the last dimension must be 1 (real) or 2 (complex), and not be the axis that is transformed"),
    (21, "float[2,4,1] x", "a = Constant <value_int = 3> () y = DFT (x, , a)",
     "DFT: axis 3 is outside of a tensor of rank 3"),
    (21, "float[2,9,2] x, int64 s, float[4] w", "y = STFT (x, s, w)",
     "STFT: the signal must be real, or complex with onesided=0"),
    (21, "float[2,9,1] x, int64 s", "y = STFT (x, s)", "STFT: it needs one of the inputs window and frame_length"),
    (21, "int64 a, float r", "y = MelWeightMatrix <output_datatype = 8> (a, a, a, r, r)",
     "MelWeightMatrix: output_datatype is 8, which tensors cannot have"),
]  # fmt: skip


@pytest.mark.parametrize(("opset", "inputs", "nodes", "message"), REFUSED, ids=[each[3] for each in REFUSED])
def test_refusals(opset: int, inputs: str, nodes: str, message: str) -> None:
    assert errors(parsed(inputs, nodes, opset))[0] == f"model.onnx: node 'n': error: {message}"


SUM_OR_ALL = (
    "If <then_branch = a () => (p) {{ p = ReduceSum <keepdims = 0> ({0}) }}, "
    "else_branch = b () => (q) {{ q = Identity ({0}) }}> (c)"
)
"""An `If` that returns a scalar or the whole of a tensor."""


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        (
            f"a = {SUM_OR_ALL.format('x')} y = MatMul (a, w)",
            "If: the branches return other ranks, and what follows fits neither",
        ),
        (
            f"a = {SUM_OR_ALL.format('x')} z = Relu (a)",
            "If: the branches return other ranks, and output 'y' of the graph is not computed from them",
        ),
        (
            "y = Loop <body = d (int64 i, bool k, float[3] t) => (bool k2, float t2) "
            f"{{ k2 = Identity (k) t2 = {SUM_OR_ALL.format('t')} }}> (m, c, x)",
            "Loop: a graph inside it has an If whose branches return other ranks",
        ),
        (
            " ".join(f"x{place + 1} = {SUM_OR_ALL.format(f'x{place}' if place else 'x')}" for place in range(40))
            + " y = ReduceMax <keepdims = 0> (x40)",
            "If: what follows an If whose branches return other ranks is converted more than 32 times",
        ),
    ],
    ids=["neither", "output", "loop", "many"],
)
def test_branches_of_other_ranks(nodes: str, message: str) -> None:
    model = parsed("float[3] x, float[5, 5] w, int64 m, bool c", nodes)
    model.graph.node[-1].name = ""
    model.graph.node[0].name = "n"
    assert f"model.onnx: node 'n': error: {message}" in errors(model)


def test_a_function_with_a_node_that_is_refused() -> None:
    model = onnx.parser.parse_model(
        """<ir_version: 10, opset_import: ["": 21, "own": 1]> g (float[2] x) => (float y) { [n] y = own.noise (x) }
        <domain: "own", opset_import: ["": 21]> noise (a) => (b) { b = Bernoulli (a) }"""
    )
    message = "noise: in the function that defines it: Bernoulli: it draws numbers at random, and has no seed"
    assert errors(model)[0] == f"model.onnx: node 'n': error: {message}"


def test_many_nodes_that_are_refused() -> None:
    lines = errors(parsed("float[2] x", " ".join(f"y{place} = Bernoulli (x)" for place in range(60))))
    assert sum("Bernoulli: it draws numbers at random" in line for line in lines) == 50
    assert "model.onnx: error: 10 more nodes cannot be imported" in lines


def test_an_output_that_no_node_computes() -> None:
    assert errors(parsed("float[2] x", "z = Relu (x)")) == ["model.onnx: error: output 'y' is not computed by any node"]


def test_notes_say_what_to_do() -> None:
    assert errors(parsed("float[2] x", "y = Zzz (x)"))[1].endswith(
        "note: an operator of your own is a function of a .mir file that is given along: --custom ops.mir"
    )
    assert errors(parsed("float[1, n] x", "y = Squeeze (x)"))[1].endswith("note: name the axes to remove")
    assert errors(parsed("uint8[9] x", "y = ImageDecoder (x)"))[1].endswith(
        "note: decode them before the model, and pass their pixels"
    )
    assert errors(parsed("float[2] x", "y = Bernoulli (x)"))[1].endswith(
        "equal inputs: give the node the attribute seed, or pass the numbers as an input"
    )
