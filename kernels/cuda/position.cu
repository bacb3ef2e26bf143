// Rotary position embedding (Su et al. 2021): pairs of elements turned by an angle that grows with the position.
//
// Launched with at least one thread for each pair, in blocks of any size.

// Turns every head of every position by the angles of `cos` and `sin`, which hold `half` values per position. `x` is
// sequence × heads × 2·half; element i of a head is paired with element i + half.
extern "C" __global__ void rope(
    float* __restrict__ x,
    const float* __restrict__ cos,
    const float* __restrict__ sin,
    size_t pairs,
    size_t half,
    size_t heads) {
    const size_t pair = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (pair >= pairs) {
        return;
    }
    const size_t head = pair / half;
    const size_t i = pair % half;
    const size_t angle = head / heads * half + i;
    float* const first = x + head * 2 * half + i;
    float* const second = first + half;
    const float a = *first;
    const float b = *second;
    *first = a * cos[angle] - b * sin[angle];
    *second = a * sin[angle] + b * cos[angle];
}
