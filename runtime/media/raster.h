// Picture files of which any part can be read or written on its own, for pictures larger than
// memory:
//   PNM    P5 (grey) and P6 (colour) of 8 or 16 bits, Pf and PF (one and three channels of 32-bit
//          floats); netpbm's pgm(5), ppm(5), pfm(5)
//   .npy   float32 or uint8 of channels x rows x columns, with or without 1 x before it
// Elements are floats: samples of P5 and P6 divided by the header's largest value, all others
// unchanged.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "base/files.h"
#include "base/picture_box.h"
#include "runtime/media/picture.h"

namespace laminate {

enum class SampleType { uint8, uint16, float32 };

struct RasterShape {
    int64_t channels = 0;
    int64_t height = 0;
    int64_t width = 0;
    SampleType type = SampleType::uint8;
    friend bool operator==(const RasterShape&, const RasterShape&) = default;
};

/// How the elements lie in the file.
struct RasterLayout {
    RasterShape shape;
    int64_t offset_bytes = 0;  ///< of the first element
    bool planar = false;       ///< C H W instead of H W C
    bool bottom_up = false;    ///< the last row first
    bool big_endian = false;
    double largest = 1;  ///< the sample that stands for 1.0
};

/// True for .pgm, .ppm, .pnm, .pfm and .npy, in upper or lower case.
[[nodiscard]] bool is_raster_file(const std::filesystem::path& path);

/// Throws InputError "WHERE: ..." unless `bytes`, the beginning of a file of file_bytes, is the
/// header of a PNM file whose elements are all there.
[[nodiscard]] RasterLayout parse_pnm_header(std::string_view bytes, int64_t file_bytes,
                                            const std::string& where);

/// An open file descriptor.
class RasterDescriptor {
public:
    explicit RasterDescriptor(int descriptor) : descriptor_(descriptor) {}
    ~RasterDescriptor();
    RasterDescriptor(const RasterDescriptor&) = delete;
    RasterDescriptor& operator=(const RasterDescriptor&) = delete;
    [[nodiscard]] int get() const { return descriptor_; }
    /// Takes over another descriptor, once.
    void reset(int descriptor) { descriptor_ = descriptor; }

private:
    int descriptor_;
};

/// Several threads may read at once.
class RasterReader {
public:
    /// Throws InputError when the file is missing, a pipe, of another kind, damaged or cut off.
    explicit RasterReader(const std::filesystem::path& path);
    [[nodiscard]] const RasterShape& shape() const { return layout_.shape; }
    /// Element (c, y, x) of the box goes to values[c * plane + y * row + x]. Throws InputError when
    /// the file cannot be read.
    void read(const PictureBox& box, float* values, int64_t plane, int64_t row) const;
    /// The samples of a part of a P5 or P6.
    [[nodiscard]] Picture read_picture(const PictureBox& box) const;

private:
    std::string where_;
    RasterDescriptor file_;
    RasterLayout layout_;
};

/// Writes aside; publish() puts the file in its place (NewFile of base/files.h). Without publish()
/// nothing is left. Several threads may write different parts at once.
class RasterWriter {
public:
    /// The extension decides: .npy and .pfm hold float32, .pgm, .ppm and .pnm 8 or 16 bits. Throws
    /// InputError for another extension, for a number of channels that the format lacks, and when
    /// the file cannot be created.
    RasterWriter(const std::filesystem::path& path, const RasterShape& shape);
    RasterWriter(const RasterWriter&) = delete;
    RasterWriter& operator=(const RasterWriter&) = delete;
    /// The sample type of a file of this name, `wanted` (the input's) where the format allows it.
    [[nodiscard]] static SampleType type_for(const std::filesystem::path& path, SampleType wanted);

    /// The inverse of RasterReader::read(): samples are rounded to the nearest and clamped.
    void write(const PictureBox& box, const float* values, int64_t plane, int64_t row);
    /// The same for a picture of the box's size.
    void write_picture(const PictureBox& box, const Picture& picture);
    void publish();

private:
    std::string where_;
    NewFile new_file_;
    RasterDescriptor file_;
    RasterLayout layout_;
};

}  // namespace laminate
