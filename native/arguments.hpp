// What comes from Python, read and checked once. Each function gives the value, or raises an error of one line that names
// the argument and says what is allowed.
#pragma once

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <stdexcept>
#include <string>

namespace grokscope {

namespace py = pybind11;

using IntArray = py::array_t<int64_t, py::array::c_style>;
using FloatArray = py::array_t<float, py::array::c_style>;

inline py::type_error wrong_type(const std::string& allowed, py::handle value) {
    return py::type_error(allowed + ", not " + Py_TYPE(value.ptr())->tp_name);
}

// What Python takes for an index: int, numpy's integers, and whatever else says that it is one.
inline py::object to_index(const std::string& allowed, py::handle value) {
    auto index = py::reinterpret_steal<py::object>(PyNumber_Index(value.ptr()));
    if (index) return index;
    if (!PyErr_ExceptionMatches(PyExc_TypeError)) throw py::error_already_set();
    PyErr_Clear();
    throw wrong_type(allowed, value);
}

inline long whole_number(const std::string& name, py::handle value, long least, long most) {
    const std::string allowed =
        name + " must be a whole number " + std::to_string(least) + " … " + std::to_string(most);
    const py::object index = to_index(allowed, value);
    int beyond = 0;  // what 64 bits can hold
    const long long number = PyLong_AsLongLongAndOverflow(index.ptr(), &beyond);
    if (beyond) throw std::invalid_argument(allowed);
    if (number < least || number > most) throw std::invalid_argument(allowed + ", not " + std::to_string(number));
    return long(number);
}

// Any number of 64 bits without a sign.
inline uint64_t seed_number(const std::string& name, py::handle value) {
    const std::string allowed =
        name + " must be a whole number 0 … " + std::to_string(std::numeric_limits<uint64_t>::max());
    const py::object index = to_index(allowed, value);
    const unsigned long long number = PyLong_AsUnsignedLongLong(index.ptr());
    if (!PyErr_Occurred()) return number;
    PyErr_Clear();
    throw std::invalid_argument(allowed);
}

// A number that is `inside` what the words describe; NaN never is, for it compares with nothing.
template <typename Inside>
double number(const std::string& name, py::handle value, const std::string& words, Inside inside) {
    const std::string allowed = name + " must be a number " + words;
    const double found = PyFloat_AsDouble(value.ptr());
    if (found == -1 && PyErr_Occurred()) {
        const bool too_large = PyErr_ExceptionMatches(PyExc_OverflowError);
        if (!too_large && !PyErr_ExceptionMatches(PyExc_TypeError)) throw py::error_already_set();
        PyErr_Clear();
        if (too_large) throw std::invalid_argument(allowed);
        throw wrong_type(allowed, value);
    }
    if (!inside(found)) throw std::invalid_argument(allowed + ", not " + std::string(py::str(py::float_(found))));
    return found;
}

inline double positive_number(const std::string& name, py::handle value) {
    return number(name, value, "above 0, and finite", [](double x) { return x > 0 && std::isfinite(x); });
}

inline double number_from_0(const std::string& name, py::handle value) {
    return number(name, value, "from 0 on, and finite", [](double x) { return x >= 0 && std::isfinite(x); });
}

inline double share(const std::string& name, py::handle value) {
    return number(name, value, "from 0 to below 1", [](double x) { return x >= 0 && x < 1; });
}

inline bool truth(const std::string& name, py::handle value) {
    if (!PyBool_Check(value.ptr())) throw wrong_type(name + " must be True or False", value);
    return value.ptr() == Py_True;
}

inline std::string text(const std::string& name, py::handle value) {
    if (!PyUnicode_Check(value.ptr())) throw wrong_type(name + " must be a text", value);
    Py_ssize_t size = 0;
    const char* characters = PyUnicode_AsUTF8AndSize(value.ptr(), &size);
    if (!characters) throw py::error_already_set();
    return std::string(characters, size_t(size));
}

// A text as Python writes it, in one line; the beginning, if it is long.
inline std::string quoted(const std::string& words) {
    const py::object beginning = py::str(words)[py::slice(0, 40, 1)];
    return py::repr(beginning).cast<std::string>();
}

template <typename Value>
Value choice(const std::string& name, py::handle value, const std::map<std::string, Value>& known) {
    const std::string chosen = text(name, value);
    if (const auto found = known.find(chosen); found != known.end()) return found->second;
    std::string names;
    for (const auto& entry : known) names += (names.empty() ? "" : ", ") + entry.first;
    throw std::invalid_argument(name + " = " + quoted(chosen) + " is not allowed: must be one of " + names);
}

// No conversion: other types, strides and byte orders are refused, and so are arrays that begin within a number.
template <typename Array>
Array array(const std::string& name, py::handle value) {
    const std::string type = py::str(py::dtype::of<typename Array::value_type>());
    const std::string allowed = name + " must be an array of " + type + ", in rows without gaps and aligned";
    if (!py::isinstance<py::array>(value)) throw wrong_type(allowed, value);
    const auto found = py::reinterpret_borrow<py::array>(value);
    if (!py::isinstance<Array>(value) || !(found.flags() & py::detail::npy_api::NPY_ARRAY_ALIGNED_))
        throw py::type_error(allowed);
    return py::reinterpret_borrow<Array>(value);
}

// Arguments by name, each of which must be taken once.
class Fields {
public:
    Fields(const std::string& whose, const py::kwargs& given) : whose_(whose), left_(given.attr("copy")()) {}

    py::object take(const char* name) {
        if (!left_.contains(name)) throw py::type_error(whose_ + " needs the argument " + name);
        return left_.attr("pop")(name);
    }

    py::object take_or(const char* name, const py::object& otherwise) {
        return left_.contains(name) ? take(name) : otherwise;
    }

    void check_that_all_were_taken() const {
        for (const auto& entry : left_)
            throw py::type_error(whose_ + " has no argument " + quoted(text("the name of an argument", entry.first)));
    }

private:
    const std::string whose_;
    py::dict left_;
};

}  // namespace grokscope
