// Convolution of images with square filters: stride 1, zeros around the image.
//
// Images are [batch][channel][row][column], filters [channel out][channel in][row][column].

#include "common.cuh"

// ---- direct: a tile of the image and the filters for it are in shared memory, a few channels at a time, and the next ones
// are on their way in registers

static constexpr unsigned int DIRECT_THREADS = 256;
static constexpr unsigned int TILE_ROWS = 8;
static constexpr unsigned int TILE_COLUMNS = 16;
static constexpr unsigned int TILE_CHANNELS = 32;
// Results of a thread: neighbouring pixels of a row, in several channels. A warp has all pixels of the tile.
static constexpr unsigned int THREAD_PIXELS = 4;
static constexpr unsigned int THREAD_CHANNELS = 4;
// From weight to weight: the channels, and something to use other banks.
static constexpr unsigned int WEIGHT_STEP = TILE_CHANNELS + 4;

template <unsigned int KERNEL> struct DirectTile {
    // Channels of the image that are in shared memory at a time.
    static constexpr unsigned int DEPTH = KERNEL > 3 ? 2 : 4;
    static constexpr unsigned int FILTER = KERNEL * KERNEL;
    static constexpr unsigned int ROWS = TILE_ROWS + KERNEL - 1;
    static constexpr unsigned int COLUMNS = TILE_COLUMNS + KERNEL - 1;
    // From row to row: an odd multiple of half the banks, so that two rows use all of them.
    static constexpr unsigned int ROW_STEP = KERNEL == 1 ? 16 : 48;
    static constexpr unsigned int PIXELS = DEPTH * ROWS * COLUMNS;
    static constexpr unsigned int WEIGHTS = DEPTH * FILTER * TILE_CHANNELS;
    __align__(16) float image[DEPTH][ROWS][ROW_STEP];
    __align__(16) float weights[DEPTH * FILTER][WEIGHT_STEP];
};

// What a thread fetches for a tile: numbers of the image and weights, zero where there are none.
template <unsigned int KERNEL> struct Fetched {
    using Tile = DirectTile<KERNEL>;
    static constexpr unsigned int PIXELS = (Tile::PIXELS + DIRECT_THREADS - 1) / DIRECT_THREADS;
    static constexpr unsigned int WEIGHTS = (Tile::WEIGHTS + DIRECT_THREADS - 1) / DIRECT_THREADS;
    float pixels[PIXELS], weights[WEIGHTS];

    // Channels of the image from `first` on, and as many weights of each channel of the result that exists.
    __device__ __forceinline__ void fetch(const float* image, const float* filters, unsigned int first,
                                          unsigned int channels_in, unsigned int channels_left, unsigned int size, int top,
                                          int left) {
#pragma unroll
        for (unsigned int i = 0; i < PIXELS; ++i) {
            const unsigned int at = threadIdx.x + i * DIRECT_THREADS;
            const unsigned int column = at % Tile::COLUMNS, row = at / Tile::COLUMNS % Tile::ROWS;
            const unsigned int channel = first + at / (Tile::COLUMNS * Tile::ROWS);
            const unsigned int y = top + row, x = left + column; // what is above or left of the image is a large number
            const bool inside = at < Tile::PIXELS && channel < channels_in && y < size && x < size;
            pixels[i] = inside ? image[(static_cast<size_t>(channel) * size + y) * size + x] : 0.0f;
        }
#pragma unroll
        for (unsigned int i = 0; i < WEIGHTS; ++i) {
            const unsigned int at = threadIdx.x + i * DIRECT_THREADS;
            const unsigned int channel = at / (Tile::DEPTH * Tile::FILTER), place = at % (Tile::DEPTH * Tile::FILTER);
            const bool inside = at < Tile::WEIGHTS && channel < channels_left && first + place / Tile::FILTER < channels_in;
            const size_t from = (static_cast<size_t>(channel) * channels_in + first) * Tile::FILTER + place;
            weights[i] = inside ? filters[from] : 0.0f;
        }
    }

    __device__ __forceinline__ void put(Tile& tile) const {
#pragma unroll
        for (unsigned int i = 0; i < PIXELS; ++i) {
            const unsigned int at = threadIdx.x + i * DIRECT_THREADS;
            if (at < Tile::PIXELS) {
                const unsigned int column = at % Tile::COLUMNS, row = at / Tile::COLUMNS % Tile::ROWS;
                tile.image[at / (Tile::COLUMNS * Tile::ROWS)][row][column] = pixels[i];
            }
        }
#pragma unroll
        for (unsigned int i = 0; i < WEIGHTS; ++i) {
            const unsigned int at = threadIdx.x + i * DIRECT_THREADS;
            if (at < Tile::WEIGHTS) {
                tile.weights[at % (Tile::DEPTH * Tile::FILTER)][at / (Tile::DEPTH * Tile::FILTER)] = weights[i];
            }
        }
    }
};

// A filter's rows slide over a strip of a row of the image each.
template <unsigned int KERNEL>
static __device__ __forceinline__ void add_products(float (&sums)[THREAD_CHANNELS][THREAD_PIXELS],
                                                    const DirectTile<KERNEL>& tile, unsigned int y, unsigned int x,
                                                    unsigned int channel) {
#pragma unroll 1
    for (unsigned int depth = 0; depth < DirectTile<KERNEL>::DEPTH; ++depth) {
        // A row of a large filter is work enough.
#pragma unroll(KERNEL > 3 ? 1 : KERNEL)
        for (unsigned int v = 0; v < KERNEL; ++v) {
            float strip[2 * THREAD_PIXELS];
            const float* row = &tile.image[depth][y + v][x];
            *reinterpret_cast<float4*>(strip) = *reinterpret_cast<const float4*>(row);
            if (KERNEL > 1) {
                *reinterpret_cast<float4*>(strip + 4) = *reinterpret_cast<const float4*>(row + 4);
            }
#pragma unroll
            for (unsigned int u = 0; u < KERNEL; ++u) {
                const float* from = &tile.weights[(depth * KERNEL + v) * KERNEL + u][channel];
                const float4 four = *reinterpret_cast<const float4*>(from);
                const float weights[THREAD_CHANNELS] = {four.x, four.y, four.z, four.w};
#pragma unroll
                for (unsigned int c = 0; c < THREAD_CHANNELS; ++c) {
#pragma unroll
                    for (unsigned int p = 0; p < THREAD_PIXELS; ++p) {
                        sums[c][p] = fmaf(weights[c], strip[u + p], sums[c][p]);
                    }
                }
            }
        }
    }
}

template <unsigned int KERNEL>
static __device__ __forceinline__ void conv2d_direct(const float* image, const float* weights, float* out,
                                                     unsigned int channels_in, unsigned int channels_out,
                                                     unsigned int size) {
    __shared__ DirectTile<KERNEL> tile;
    const unsigned int tiles_across = (size + TILE_COLUMNS - 1) / TILE_COLUMNS;
    const unsigned int top = blockIdx.x / tiles_across * TILE_ROWS, left = blockIdx.x % tiles_across * TILE_COLUMNS;
    const unsigned int first_channel = blockIdx.y * TILE_CHANNELS;
    constexpr int BORDER = KERNEL / 2;
    image += static_cast<size_t>(blockIdx.z) * channels_in * size * size;
    weights += static_cast<size_t>(first_channel) * channels_in * KERNEL * KERNEL;
    const unsigned int x = threadIdx.x % 4 * THREAD_PIXELS, y = threadIdx.x / 4 % TILE_ROWS;
    const unsigned int channel = threadIdx.x / WARP * THREAD_CHANNELS;
    float sums[THREAD_CHANNELS][THREAD_PIXELS] = {};
    Fetched<KERNEL> next;
    const auto fetch = [&](unsigned int first) {
        next.fetch(image, weights, first, channels_in, channels_out - first_channel, size, static_cast<int>(top) - BORDER,
                   static_cast<int>(left) - BORDER);
    };
    fetch(0);
    for (unsigned int first = 0; first < channels_in; first += tile.DEPTH) {
        __syncthreads();
        next.put(tile);
        __syncthreads();
        fetch(first + tile.DEPTH);
        add_products<KERNEL>(sums, tile, y, x, channel);
    }
#pragma unroll
    for (unsigned int c = 0; c < THREAD_CHANNELS; ++c) {
        const unsigned int o = first_channel + channel + c;
        if (o >= channels_out || top + y >= size) {
            continue;
        }
        float* row = out + ((static_cast<size_t>(blockIdx.z) * channels_out + o) * size + top + y) * size;
#pragma unroll
        for (unsigned int p = 0; p < THREAD_PIXELS; ++p) {
            if (left + x + p < size) {
                row[left + x + p] = sums[c][p];
            }
        }
    }
}

// Blocks of 256; the grid is tiles of the image, groups of 32 channels, images.
#define DIRECT(KERNEL)                                                                                                 \
    extern "C" __global__ void __launch_bounds__(DIRECT_THREADS, 2)                                                    \
        conv2d_direct_##KERNEL(const float* image, const float* weights, float* out, unsigned int channels_in,         \
                               unsigned int channels_out, unsigned int size) {                                         \
        conv2d_direct<KERNEL>(image, weights, out, channels_in, channels_out, size);                                   \
    }
DIRECT(1)
DIRECT(3)
DIRECT(5)

// ---- implicit product: filters times the matrix of patches, which exists in tiles in shared memory only

static constexpr unsigned int PRODUCT_TILE = 64; // channels, and pixels, of a block
static constexpr unsigned int PRODUCT_DEPTH = 16;
static constexpr unsigned int THREAD_TILE = 4; // channels, and pixels, of a thread
static constexpr unsigned int PER_THREAD = PRODUCT_TILE * PRODUCT_DEPTH / 256;

struct Patches {
    const float* image; // of this thread's pixel
    unsigned int size, kernel, patch;
    int top, left; // of its patch
    bool exists;

    // What the weight at `place` of a filter is multiplied with.
    __device__ __forceinline__ float at(unsigned int place) const {
        const unsigned int filter = kernel * kernel;
        const unsigned int channel = place / filter, v = place % filter / kernel, u = place % kernel;
        const unsigned int y = top + v, x = left + u; // what is left of the image is a large number
        const bool inside = exists && place < patch && y < size && x < size;
        return inside ? image[(static_cast<size_t>(channel) * size + y) * size + x] : 0.0f;
    }
};

// Blocks of 256; the grid is groups of 64 pixels of all images, groups of 64 channels.
extern "C" __global__ void __launch_bounds__(256)
    conv2d_implicit(const float* image, const float* weights, float* out, unsigned int channels_in,
                    unsigned int channels_out, unsigned int size, unsigned int kernel, unsigned int pixels) {
    __shared__ __align__(16) float filters[PRODUCT_DEPTH][PRODUCT_TILE + 4];
    __shared__ __align__(16) float patches[PRODUCT_DEPTH][PRODUCT_TILE];
    const unsigned int plane = size * size, patch = channels_in * kernel * kernel;
    // This thread fetches weights of one channel and numbers of one pixel.
    const unsigned int channel = blockIdx.y * PRODUCT_TILE + threadIdx.x / 4, place = threadIdx.x % 4 * PER_THREAD;
    const unsigned int pixel = blockIdx.x * PRODUCT_TILE + threadIdx.x % PRODUCT_TILE;
    const unsigned int in_plane = pixel % plane, border = kernel / 2;
    const Patches source = {image + static_cast<size_t>(pixel / plane) * channels_in * plane,
                            size,
                            kernel,
                            patch,
                            static_cast<int>(in_plane / size) - static_cast<int>(border),
                            static_cast<int>(in_plane % size) - static_cast<int>(border),
                            pixel < pixels};
    float next_weights[PER_THREAD], next_numbers[PER_THREAD];
    const auto fetch = [&](unsigned int start) {
#pragma unroll
        for (unsigned int i = 0; i < PER_THREAD; ++i) {
            const unsigned int at = start + place + i;
            const bool inside = channel < channels_out && at < patch;
            next_weights[i] = inside ? weights[static_cast<size_t>(channel) * patch + at] : 0.0f;
            next_numbers[i] = source.at(start + threadIdx.x / PRODUCT_TILE + 4 * i);
        }
    };
    const unsigned int first_channel = threadIdx.x / 16 * THREAD_TILE, first_pixel = threadIdx.x % 16 * THREAD_TILE;
    float sums[THREAD_TILE][THREAD_TILE] = {};
    fetch(0);
    for (unsigned int start = 0; start < patch; start += PRODUCT_DEPTH) {
        __syncthreads();
#pragma unroll
        for (unsigned int i = 0; i < PER_THREAD; ++i) {
            filters[place + i][threadIdx.x / 4] = next_weights[i];
            patches[threadIdx.x / PRODUCT_TILE + 4 * i][threadIdx.x % PRODUCT_TILE] = next_numbers[i];
        }
        __syncthreads();
        fetch(start + PRODUCT_DEPTH);
#pragma unroll
        for (unsigned int k = 0; k < PRODUCT_DEPTH; ++k) {
            const float4 a = *reinterpret_cast<const float4*>(&filters[k][first_channel]);
            const float4 b = *reinterpret_cast<const float4*>(&patches[k][first_pixel]);
            const float rows[THREAD_TILE] = {a.x, a.y, a.z, a.w}, columns[THREAD_TILE] = {b.x, b.y, b.z, b.w};
#pragma unroll
            for (unsigned int i = 0; i < THREAD_TILE; ++i) {
#pragma unroll
                for (unsigned int j = 0; j < THREAD_TILE; ++j) {
                    sums[i][j] = fmaf(rows[i], columns[j], sums[i][j]);
                }
            }
        }
    }
#pragma unroll
    for (unsigned int i = 0; i < THREAD_TILE; ++i) {
#pragma unroll
        for (unsigned int j = 0; j < THREAD_TILE; ++j) {
            const unsigned int o = blockIdx.y * PRODUCT_TILE + first_channel + i;
            const unsigned int p = blockIdx.x * PRODUCT_TILE + first_pixel + j;
            if (o < channels_out && p < pixels) {
                out[(static_cast<size_t>(p / plane) * channels_out + o) * plane + p % plane] = sums[i][j];
            }
        }
    }
}
