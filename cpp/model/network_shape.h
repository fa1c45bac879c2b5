/*!
 * \file model/network_shape.h
 * \brief What fixes the shape of a network, and the range of each of its settings.
 */
#ifndef TLP_TVM_MODEL_NETWORK_SHAPE_H_
#define TLP_TVM_MODEL_NETWORK_SHAPE_H_

namespace tlp_tvm {
namespace model {

/*! \brief As in Python's TLPSettings. */
struct NetworkShape {
  int length;
  int width;
  int hidden;
  int attention_heads;
  int layers;
  int members;
  int heads;
  bool positions;

  /*! \throws std::invalid_argument that names the setting which is out of its range. */
  void Check() const;
};

/*! \brief What a setting may be; Python reads it from here. */
struct SettingRange {
  const char* name;
  int NetworkShape::* setting;
  int first;
  int last;
};

/*! \brief Far beyond every sensible network, and small enough that no product of two wraps. */
constexpr SettingRange kSettingRanges[] = {
    {"length", &NetworkShape::length, 1, 4096},
    {"width", &NetworkShape::width, 1, 4096},
    {"hidden", &NetworkShape::hidden, 4, 16384},
    {"layers", &NetworkShape::layers, 0, 256},
    {"members", &NetworkShape::members, 1, 256},
    {"heads", &NetworkShape::heads, 1, 1024},
    {"attention_heads", &NetworkShape::attention_heads, 1, 16384},
};

}  // namespace model
}  // namespace tlp_tvm

#endif  // TLP_TVM_MODEL_NETWORK_SHAPE_H_
