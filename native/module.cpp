// The Python module grokscope._native: checks what comes from Python, then trains with the GIL released.
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>

#include "arguments.hpp"
#include "trainer.hpp"
#include "layout.hpp"

using namespace grokscope;

namespace {

std::vector<std::string> available_levels() {
    std::vector<std::string> levels{"plain"};
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        levels.insert(levels.end(), {"split", "avx2"});  // split is for tests
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512vl"))
        levels.push_back("avx512");
#endif
    return levels;
}

std::string available_level(py::handle value) {
    std::map<std::string, std::string> known;
    for (const auto& level : available_levels()) known[level] = level;
    return choice("level", value, known);
}

const std::map<std::string, Loss> LOSSES{{"mse", Loss::mse}, {"cross-entropy", Loss::cross_entropy}};

Examples to_examples(const IntArray& pairs, const IntArray& labels, long modulus) {
    if (pairs.ndim() != 2 || pairs.shape(1) != 2) throw std::invalid_argument("pairs must have the shape [n, 2]");
    if (labels.ndim() != 1 || labels.shape(0) != pairs.shape(0))
        throw std::invalid_argument("labels must have the shape [n] of the pairs");
    if (pairs.shape(0) > MAX_EXAMPLES)
        throw std::invalid_argument("there must be at most " + std::to_string(MAX_EXAMPLES) + " pairs");
    Examples examples;
    for (std::vector<int32_t>* values : {&examples.m, &examples.n, &examples.label})
        values->reserve(size_t(pairs.shape(0)));
    const auto inside = [modulus](int64_t value) {
        if (value < 0 || value >= modulus) throw std::invalid_argument("pairs and labels must lie in 0 … modulus - 1");
        return int32_t(value);
    };
    const auto pair = pairs.unchecked<2>();
    const auto label = labels.unchecked<1>();
    for (py::ssize_t i = 0; i < pairs.shape(0); i++) {
        examples.m.push_back(inside(pair(i, 0)));
        examples.n.push_back(inside(pair(i, 1)));
        examples.label.push_back(inside(label(i)));
    }
    return examples;
}

Config to_config(Fields& fields) {
    Config config;
    config.modulus = whole_number("modulus", fields.take("modulus"), 1, MAX_MODULUS);
    const bool transformer =
        choice<bool>("network", fields.take_or("network", py::str("mlp")), {{"mlp", false}, {"transformer", true}});
    config.width = whole_number("width", fields.take("width"), 1, transformer ? MAX_EMBED : MAX_WIDTH);
    if (transformer) {
        config.layers = whole_number("layers", fields.take("layers"), 1, MAX_LAYERS);
        config.heads = whole_number("heads", fields.take("heads"), 1, config.width);
        if (config.width % config.heads) throw std::invalid_argument("heads must divide width");
        config.mlp_width = whole_number("mlp_width", fields.take("mlp_width"), 1, MAX_MLP_WIDTH);
        config.tied = truth("tied", fields.take("tied"));
        config.decay_embeddings = truth("decay_embeddings", fields.take("decay_embeddings"));
        config.score_divisor = positive_number("score_divisor", fields.take("score_divisor"));
        config.logit_divisor = positive_number("logit_divisor", fields.take("logit_divisor"));
        config.attention_rate = positive_number("attention_rate", fields.take("attention_rate"));
        config.mlp_in_rate = positive_number("mlp_in_rate", fields.take("mlp_in_rate"));
        config.mlp_out_rate = positive_number("mlp_out_rate", fields.take("mlp_out_rate"));
        config.other_rate = positive_number("other_rate", fields.take("other_rate"));
    } else {
        config.depth = whole_number("depth", fields.take("depth"), 2, MAX_DEPTH);
    }
    config.activation = choice<Activation>(
        "activation", fields.take("activation"),
        {{"quadratic", Activation::quadratic}, {"relu", Activation::relu}, {"gelu", Activation::gelu}});
    config.loss = choice("loss", fields.take("loss"), LOSSES);
    config.norm = choice<Norm>("norm", fields.take("norm"),
                               {{"none", Norm::none}, {"batch", Norm::batch}, {"layer", Norm::layer}});
    config.optimizer =
        choice<Optimizer>("optimizer", fields.take("optimizer"),
                          {{"adamw", Optimizer::adamw}, {"adam", Optimizer::adam}, {"sgd", Optimizer::sgd}});
    config.form =
        choice<Form>("form", fields.take("form"),
                     {{"automatic", Form::automatic},
                                     {"direct", Form::direct},
                                     {"complement", Form::complement},
                                     {"tokens", Form::tokens}});
    config.batch_size = whole_number("batch_size", fields.take("batch_size"), 0, MAX_EXAMPLES);
    config.dropout_threshold =
        uint32_t(whole_number("dropout_threshold", fields.take("dropout_threshold"), 0, MAX_DROPOUT_THRESHOLD));
    config.dropout_scale = positive_number("dropout_scale", fields.take("dropout_scale"));
    config.learning_rate = number_from_0("learning_rate", fields.take("learning_rate"));
    config.weight_decay = number_from_0("weight_decay", fields.take("weight_decay"));
    config.beta1 = share("beta1", fields.take("beta1"));
    config.beta2 = share("beta2", fields.take("beta2"));
    config.epsilon = positive_number("epsilon", fields.take("epsilon"));
    config.momentum = share("momentum", fields.take("momentum"));
    config.seed = seed_number("seed", fields.take("seed"));
    if (transformer && config.norm == Norm::batch) throw std::invalid_argument("a Transformer has no BatchNorm");
    return config;
}

class PyTrainer {
public:
    PyTrainer(const std::string& level, const Config& config, const Examples& examples) : config_(config) {
        if (examples.count() == 0) throw std::invalid_argument("there must be at least one training example");
        if (config.batch_size > examples.count())
            throw std::invalid_argument("batch_size must be 0 … the number of training examples");
        if (config.norm == Norm::batch && (config.batch_size ? config.batch_size : examples.count()) < 2)
            throw std::invalid_argument("BatchNorm needs at least 2 examples in a batch");
        // Most of what it takes: weights, their gradient and two moments. Refused before any of it is made.
        if (config.layers > 0)
            bytes_for({4, TransformerPlaces(config, 1).size()}, sizeof(float));
        else
            bytes_for({4, 3 * config.modulus + (config.depth - 2) * config.width, config.width}, sizeof(float));
        trainer_ = level == "avx512" ? make_trainer_avx512(config, examples)
                   : level == "avx2" ? make_trainer_avx2(config, examples)
                   : level == "split" ? make_trainer_split(config, examples)
                                     : make_trainer_plain(config, examples);
    }

    long step() {
        const auto alone = exclusive();
        return trainer_->step;
    }
    void set_step(py::handle value) {
        const long step = whole_number("step", value, 0, MAX_STEPS);
        const auto alone = exclusive();
        trainer_->step = step;
    }
    bool uses_complement() { return trainer_->uses_complement(); }

    py::array_t<double> advance(py::handle value) {
        const long steps = whole_number("steps", value, 0, MAX_STEPS);
        const auto alone = exclusive();
        check_steps_left(steps);
        bytes_for({steps}, sizeof(double));
        py::array_t<double> losses(steps);
        double* out = losses.mutable_data();
        const py::gil_scoped_release release;
        trainer_->advance(steps, out);
        return losses;
    }

    double gradient() {
        const auto alone = exclusive();
        check_steps_left(1);
        const py::gil_scoped_release release;
        return trainer_->gradient();
    }

    py::tuple evaluate(py::handle pairs, py::handle labels) {
        const Examples examples =
            to_examples(array<IntArray>("pairs", pairs), array<IntArray>("labels", labels), config_.modulus);
        const auto alone = exclusive();
        py::array_t<int64_t> predictions(examples.count());
        py::array_t<double> losses(examples.count());
        int64_t* predicted = predictions.mutable_data();
        double* loss = losses.mutable_data();
        {
            const py::gil_scoped_release release;
            trainer_->evaluate(examples, predicted, loss);
        }
        return py::make_tuple(predictions, losses);
    }

    // Arrays go in and out without panels and padding.
    FloatArray get(py::handle kind_, py::handle name_) {
        const std::string kind = text("kind", kind_), name = text("name", name_);
        const auto alone = exclusive();
        const Array kept = find(kind, name);
        FloatArray found = kept.rows ? FloatArray({kept.rows, kept.columns}) : FloatArray(kept.columns);
        float* out = found.mutable_data();
        for (long row = 0; row < std::max(kept.rows, 1L); row++)
            for (long k = 0; k < kept.columns; k++) *out++ = kept.data[place(kept, row, k)];
        return found;
    }

    void set(py::handle kind_, py::handle name_, py::handle array_) {
        const std::string kind = text("kind", kind_), name = text("name", name_);
        const auto given = array<FloatArray>("array", array_);
        const auto alone = exclusive();
        const Array kept = find(kind, name);
        const long rows = kept.rows, columns = kept.columns;
        const bool fits = rows ? given.ndim() == 2 && given.shape(0) == rows && given.shape(1) == columns
                               : given.ndim() == 1 && given.shape(0) == columns;
        if (!fits)
            throw std::invalid_argument(kind + "." + name + " has the wrong shape: must be [" +
                                        (rows ? std::to_string(rows) + ", " : "") + std::to_string(columns) + "]");
        for (long row = 0; row < std::max(rows, 1L); row++)
            for (long k = 0; k < columns; k++) kept.data[place(kept, row, k)] = given.data()[row * columns + k];
    }

private:
    // While one thread trains without the GIL, another must not touch the same trainer.
    std::unique_lock<std::mutex> exclusive() {
        std::unique_lock<std::mutex> lock(busy_, std::try_to_lock);
        if (!lock) throw std::runtime_error("this trainer is in use by another thread");
        return lock;
    }

    void check_steps_left(long steps) const {
        if (steps > MAX_STEPS - trainer_->step)
            throw std::invalid_argument(std::to_string(steps) + " more steps are not allowed at step " +
                                        std::to_string(trainer_->step) + ": the last is step " +
                                        std::to_string(MAX_STEPS));
    }

    // Where an array keeps this row's value of column k.
    long place(const Array& array, long row, long k) const {
        return array.rows ? panel_place(row, k, panel_rows(array.rows), trainer_->panel()) : k;
    }

    Array find(const std::string& kind, const std::string& name) {
        const Array found = trainer_->find(kind, name);
        if (!found.data) throw std::invalid_argument("there is no array " + quoted(kind + "." + name));
        return found;
    }

    Config config_;
    std::unique_ptr<Trainer> trainer_;
    std::mutex busy_;
};

// The trainer in a Python object. One whose __init__ never ran has none, and pybind11 would take unset memory for it.
PyTrainer& trainer_in(py::handle self) {
    if (!py::isinstance<PyTrainer>(self)) throw wrong_type("this needs a Trainer", self);
    const auto held = reinterpret_cast<py::detail::instance*>(self.ptr())
                          ->get_value_and_holder(py::detail::get_type_info(typeid(PyTrainer)));
    if (!held.holder_constructed()) throw py::type_error("this Trainer was not made by calling Trainer(...)");
    return *held.value_ptr<PyTrainer>();
}

// A method as pybind11 calls it, on a checked trainer.
template <typename Result, typename... Arguments>
auto checked(Result (PyTrainer::*method)(Arguments...)) {
    return [method](py::handle self, Arguments... arguments) { return (trainer_in(self).*method)(arguments...); };
}

void make_trainer(py::detail::value_and_holder& self, const py::kwargs& given) {
    Fields fields("Trainer", given);
    const std::string level = available_level(fields.take("level"));
    const Config config = to_config(fields);
    const auto pairs = array<IntArray>("pairs", fields.take("pairs"));
    const auto labels = array<IntArray>("labels", fields.take("labels"));
    fields.check_that_all_were_taken();
    auto trainer = std::make_unique<PyTrainer>(level, config, to_examples(pairs, labels, config.modulus));
    // Numbers of a class of one's own run its code, and that may have called __init__ in the meantime.
    if (self.instance_registered()) throw py::type_error("this Trainer was made while it was being made");
    self.value_ptr() = trainer.release();
}

py::tuple evaluate_prefixes(py::handle level_, py::handle hidden_, py::handle output_, py::handle order_,
                            py::handle labels_, py::handle loss_, py::handle scale_, py::handle shift_) {
    const std::string level = available_level(level_);
    const auto hidden = array<FloatArray>("hidden", hidden_), output = array<FloatArray>("output", output_);
    const auto order = array<IntArray>("order", order_), labels = array<IntArray>("labels", labels_);
    const Loss loss = choice("loss", loss_, LOSSES);
    if (hidden.ndim() != 2 || output.ndim() != 2 || hidden.shape(1) != output.shape(1))
        throw std::invalid_argument("hidden and output must have the shapes [n, N] and [p, N]");
    const long rows = hidden.shape(0), width = hidden.shape(1), outputs = output.shape(0);
    if (outputs < 1 || outputs > MAX_MODULUS)
        throw std::invalid_argument("there must be 1 … " + std::to_string(MAX_MODULUS) + " outputs");
    if (width > MAX_WIDTH)
        throw std::invalid_argument("there must be at most " + std::to_string(MAX_WIDTH) + " neurons");
    if (rows > MAX_EXAMPLES)
        throw std::invalid_argument("there must be at most " + std::to_string(MAX_EXAMPLES) + " rows");
    if (labels.ndim() != 1 || labels.shape(0) != rows)
        throw std::invalid_argument("labels must have the shape [n] of the rows");
    if (order.ndim() != 1 || order.shape(0) != width) throw std::invalid_argument("order must have the shape [N]");
    // What is an index is copied before it is checked: another thread may write to the arrays while this one computes.
    const std::vector<int64_t> own_labels(labels.data(), labels.data() + rows);
    const std::vector<int64_t> own_order(order.data(), order.data() + width);
    for (const int64_t label : own_labels)
        if (label < 0 || label >= outputs) throw std::invalid_argument("labels must lie in 0 … p - 1");
    std::vector<bool> seen(size_t(width), false);
    for (const int64_t neuron : own_order) {
        if (neuron < 0 || neuron >= width || seen[size_t(neuron)])
            throw std::invalid_argument("order must name every neuron 0 … N - 1 once");
        seen[size_t(neuron)] = true;
    }
    if (scale_.is_none() != shift_.is_none()) throw std::invalid_argument("a norm has both a scale and a shift");
    std::optional<FloatArray> scale, shift;
    if (!scale_.is_none()) scale = array<FloatArray>("scale", scale_), shift = array<FloatArray>("shift", shift_);
    for (const auto& vector : {scale, shift})
        if (vector && (vector->ndim() != 1 || vector->shape(0) != width))
            throw std::invalid_argument("scale and shift must have the shape [N]");
    bytes_for({width + 1, rows}, sizeof(uint16_t) + sizeof(float));
    py::array_t<uint16_t> predictions({width + 1, rows});
    FloatArray losses({width + 1, rows});
    const PrefixTask task{rows,
                          width,
                          outputs,
                          hidden.data(),
                          output.data(),
                          own_order.data(),
                          own_labels.data(),
                          scale ? scale->data() : nullptr,
                          shift ? shift->data() : nullptr,
                          loss,
                          predictions.mutable_data(),
                          losses.mutable_data()};
    {
        const py::gil_scoped_release release;
        level == "avx512" ? evaluate_prefixes_avx512(task)
        : level == "avx2" ? evaluate_prefixes_avx2(task)
        : level == "split" ? evaluate_prefixes_split(task)
                          : evaluate_prefixes_plain(task);
    }
    return py::make_tuple(predictions, losses);
}

double fma_peak(py::handle level_, py::handle seconds_) {
    const std::string level = available_level(level_);
    const double seconds = number("seconds", seconds_, "above 0 and at most " + std::to_string(MAX_PEAK_SECONDS),
                                  [](double x) { return x > 0 && x <= double(MAX_PEAK_SECONDS); });
    const py::gil_scoped_release release;
    return level == "avx512" ? fma_peak_avx512(seconds)
           : level == "avx2" ? fma_peak_avx2(seconds)
           : level == "split" ? fma_peak_split(seconds)
                             : fma_peak_plain(seconds);
}

}  // namespace

PYBIND11_MODULE(_native, module) {
    module.doc() = "Training of networks on modular arithmetic, in C++.";
    module.def("fma_peak", &fma_peak, py::arg("level"), py::arg("seconds"),
               "GFLOP/s of multiply-adds in the registers of one core.");
    module.def("available_levels", &available_levels, "Instruction levels that this CPU has, the fastest last.");
    module.def("evaluate_prefixes", &evaluate_prefixes, py::arg("level"), py::arg("hidden"), py::arg("output"),
               py::arg("order"), py::arg("labels"), py::arg("loss"), py::arg("scale") = py::none(),
               py::arg("shift") = py::none(),
               "Predictions and losses [N + 1, n] without the first 0 … N neurons of an order.");
    py::class_<PyTrainer>(module, "Trainer")
        .def("__init__", &make_trainer, py::detail::is_new_style_constructor())
        .def_property("step", checked(&PyTrainer::step), checked(&PyTrainer::set_step))
        .def_property_readonly("uses_complement", checked(&PyTrainer::uses_complement))
        .def("advance", checked(&PyTrainer::advance), py::arg("steps"),
             "Take steps; the loss of each, before its update.")
        .def("gradient", checked(&PyTrainer::gradient),
             "Compute the loss and the gradient of the next step, without taking it.")
        .def("evaluate", checked(&PyTrainer::evaluate), py::arg("pairs"), py::arg("labels"),
             "Predictions and losses, in evaluation mode.")
        .def("get", checked(&PyTrainer::get), py::arg("kind"), py::arg("name"))
        .def("set", checked(&PyTrainer::set), py::arg("kind"), py::arg("name"), py::arg("array"))
        .def("__reduce_ex__", [](py::handle, py::handle) -> py::object {
            throw py::type_error(
                "a Trainer can be neither copied nor pickled: get its arrays, and set them in another");
        });
}
