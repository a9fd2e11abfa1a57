// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Other people's tensors as addresses, and addresses as tensors.

#include "Core.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstring>

using namespace dfa::python;
using nb::dlpack::dtype_code;

namespace {

struct TensorInfo {
  uint64_t address;
  std::vector<int64_t> shape, strides;
  std::string format, kind;
  int32_t ordinal;
};

} // namespace

static std::string getFormat(nb::dlpack::dtype type) {
  std::string bits = std::to_string(type.bits);
  if (type.lanes != 1)
    return "x" + bits;
  switch (static_cast<dtype_code>(type.code)) {
  case dtype_code::Float:
    return "f" + bits;
  case dtype_code::Bfloat:
    return "bf" + bits;
  case dtype_code::Int:
    return "i" + bits;
  case dtype_code::UInt:
    return "u" + bits;
  default:
    return "x" + bits; // none that a step knows
  }
}

static nb::dlpack::dtype parseFormat(const std::string &format) {
  struct Name {
    const char *name;
    dtype_code code;
    uint8_t bits;
  };
  static const Name names[] = {
      {"f64", dtype_code::Float, 64}, {"f32", dtype_code::Float, 32},
      {"f16", dtype_code::Float, 16}, {"bf16", dtype_code::Bfloat, 16},
      {"i64", dtype_code::Int, 64},   {"i16", dtype_code::Int, 16},
  };
  for (const Name &entry : names)
    if (format == entry.name)
      return {static_cast<uint8_t>(entry.code), entry.bits, 1};
  throw nb::value_error(
      ("expects format f64, f32, f16, bf16, i64 or i16, but got '" + format +
       "'")
          .c_str());
}

static TensorInfo describe(const nb::ndarray<> &tensor) {
  TensorInfo info;
  info.address = toAddress(tensor.data());
  for (size_t i = 0; i < tensor.ndim(); ++i) {
    info.shape.push_back(static_cast<int64_t>(tensor.shape(i)));
    info.strides.push_back(tensor.stride(i));
  }
  info.format = getFormat(tensor.dtype());
  bool isCuda = tensor.device_type() == nb::device::cuda::value ||
                tensor.device_type() == nb::device::cuda_managed::value;
  bool isHost = tensor.device_type() == nb::device::cpu::value ||
                tensor.device_type() == nb::device::cuda_host::value;
  info.kind = isCuda ? "cuda" : isHost ? "cpu" : "other";
  info.ordinal = isCuda ? tensor.device_id() : 0;
  return info;
}

static nb::ndarray<nb::array_api>
view(uint64_t address, const std::vector<size_t> &shape,
     const std::vector<int64_t> &strides, const std::string &format,
     const std::string &kind, int32_t ordinal, nb::object owner) {
  if (shape.size() != strides.size())
    throw nb::value_error("expects as many strides as dims");
  bool isCuda = kind == "cuda";
  return nb::ndarray<nb::array_api>(
      toPointer(address), shape.size(), shape.data(), owner, strides.data(),
      parseFormat(format),
      isCuda ? nb::device::cuda::value : nb::device::cpu::value,
      isCuda ? ordinal : 0);
}

// === Conversions of host memory =============================================

static double readF16(uint16_t bits) {
  uint32_t exponent = (bits >> 10) & 31;
  uint32_t mantissa = bits & 0x3ff;
  uint32_t sign = static_cast<uint32_t>(bits & 0x8000) << 16;
  uint32_t wide;
  if (exponent == 31) {
    wide = sign | 0x7f800000 | (mantissa << 13);
  } else if (exponent != 0) {
    wide = sign | ((exponent + 112) << 23) | (mantissa << 13);
  } else {
    // Subnormals and zeros: a multiple of 2^-24.
    double value = static_cast<double>(mantissa) * 0x1p-24;
    return sign ? -value : value;
  }
  float value;
  std::memcpy(&value, &wide, sizeof(value));
  return value;
}

static double readBF16(uint16_t bits) {
  uint32_t wide = static_cast<uint32_t>(bits) << 16;
  float value;
  std::memcpy(&value, &wide, sizeof(value));
  return value;
}

template <typename T> static double readAs(const char *source, int64_t index) {
  T value;
  std::memcpy(&value, source + static_cast<size_t>(index) * sizeof(T),
              sizeof(T));
  return static_cast<double>(value);
}

template <double (*Read)(uint16_t)>
static double readBits(const char *source, int64_t index) {
  uint16_t bits;
  std::memcpy(&bits, source + static_cast<size_t>(index) * sizeof(bits),
              sizeof(bits));
  return Read(bits);
}

using Reader = double (*)(const char *, int64_t);

static Reader findReader(const std::string &format) {
  if (format == "f64")
    return readAs<double>;
  if (format == "f32")
    return readAs<float>;
  if (format == "f16")
    return readBits<readF16>;
  return format == "bf16" ? readBits<readBF16> : nullptr;
}

static void widen(uint64_t source, const std::string &sourceFormat,
                  uint64_t target, const std::string &targetFormat,
                  int64_t count) {
  Reader read = findReader(sourceFormat);
  bool isDouble = targetFormat == "f64";
  if (!read || (!isDouble && targetFormat != "f32"))
    throw nb::value_error(("expects to widen f16, bf16, f32 or f64 to f32 or "
                           "f64, but got '" +
                           sourceFormat + "' to '" + targetFormat + "'")
                              .c_str());
  const char *from = static_cast<const char *>(toPointer(source));
  nb::gil_scoped_release release;
  for (int64_t i = 0; i < count; ++i) {
    double value = read(from, i);
    if (isDouble)
      static_cast<double *>(toPointer(target))[i] = value;
    else
      static_cast<float *>(toPointer(target))[i] = static_cast<float>(value);
  }
}

void dfa::python::addTensors(nb::module_ &module) {
  nb::class_<TensorInfo>(module, "TensorInfo")
      .def_ro("address", &TensorInfo::address)
      .def_prop_ro("shape",
                   [](const TensorInfo &self) {
                     return nb::tuple(nb::cast(self.shape));
                   })
      .def_prop_ro("strides",
                   [](const TensorInfo &self) {
                     return nb::tuple(nb::cast(self.strides));
                   })
      .def_ro("format", &TensorInfo::format)
      .def_ro("kind", &TensorInfo::kind)
      .def_ro("ordinal", &TensorInfo::ordinal);
  module.def("describe", describe, "tensor"_a.noconvert());
  module.def("view", view, "address"_a, "shape"_a, "strides"_a, "format"_a,
             "kind"_a, "ordinal"_a, "owner"_a);
  module.def("widen", widen, "source"_a, "source_format"_a, "target"_a,
             "target_format"_a, "count"_a);
}
