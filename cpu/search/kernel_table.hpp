// kernel_table: an instruction set's kernels of searches; read after striped_kernel.hpp and shift_kernel.hpp.

const SearchKernels kSearchKernels = {
    kVectorBytes,
    kColumns,
    {scan<int8_t, Mode::kLocal>, scan<int16_t, Mode::kLocal>, scan<int32_t, Mode::kLocal>},
    {nullptr, scan<int16_t, Mode::kGlobal>, scan<int32_t, Mode::kGlobal>},
    {nullptr, scan<int16_t, Mode::kSemiglobal>, scan<int32_t, Mode::kSemiglobal>},
    {stripe<int8_t, Mode::kLocal>, stripe<int16_t, Mode::kLocal>, stripe<int32_t, Mode::kLocal>},
    {nullptr, stripe<int16_t, Mode::kGlobal>, stripe<int32_t, Mode::kGlobal>},
    {nullptr, stripe<int16_t, Mode::kSemiglobal>, stripe<int32_t, Mode::kSemiglobal>},
    {scan_shifted<int8_t>, scan_shifted<int16_t>, scan_shifted<int32_t>},
};
