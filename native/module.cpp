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

#include "trainer.hpp"

namespace py = pybind11;
using namespace grokscope;

using IntArray = py::array_t<int64_t, py::array::c_style>;
using FloatArray = py::array_t<float, py::array::c_style>;

namespace {

std::vector<std::string> available_levels() {
    std::vector<std::string> levels{"plain"};
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) levels.push_back("avx2");
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512vl"))
        levels.push_back("avx512");
#endif
    return levels;
}

void check_level(const std::string& level) {
    const auto levels = available_levels();
    if (std::find(levels.begin(), levels.end(), level) == levels.end())
        throw std::invalid_argument("this CPU does not have the instructions of level '" + level + "'");
}

template <typename Value>
Value choice(const std::string& field, const std::string& name, const std::map<std::string, Value>& known) {
    const auto found = known.find(name);
    if (found == known.end()) throw std::invalid_argument(field + " = '" + name + "' is not in this kernel");
    return found->second;
}

// dtype and contiguity are checked by taking no conversion: a float64 or strided array raises TypeError.
Examples to_examples(const IntArray& pairs, const IntArray& labels, long modulus) {
    if (pairs.ndim() != 2 || pairs.shape(1) != 2) throw std::invalid_argument("pairs must have the shape [n, 2]");
    if (labels.ndim() != 1 || labels.shape(0) != pairs.shape(0))
        throw std::invalid_argument("labels must have the shape [n] of the pairs");
    Examples examples;
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

class PyTrainer {
public:
    PyTrainer(const std::string& level, const Config& config, const IntArray& pairs, const IntArray& labels)
        : config_(config) {
        if (config.modulus < 1 || config.modulus > 65535) throw std::invalid_argument("modulus must be 1 … 65535");
        if (config.width < 1) throw std::invalid_argument("width must be at least 1");
        if (config.depth < 2 || config.depth > 64) throw std::invalid_argument("depth must be 2 … 64");
        if (config.depth > 2 && config.norm != Norm::none)
            throw std::invalid_argument("this kernel has no norms in networks of more than two layers");
        if (config.dropout_threshold > 65535) throw std::invalid_argument("dropout_threshold must be 0 … 65535");
        const Examples examples = to_examples(pairs, labels, config.modulus);
        if (examples.count() == 0) throw std::invalid_argument("there must be at least one training example");
        if (config.batch_size < 0 || config.batch_size > examples.count())
            throw std::invalid_argument("batch_size must be 0 … the number of training examples");
        if (config.norm == Norm::batch && (config.batch_size ? config.batch_size : examples.count()) < 2)
            throw std::invalid_argument("BatchNorm needs at least 2 examples in a batch");
        check_level(level);
        trainer_ = level == "avx512" ? make_trainer_avx512(config, examples)
                   : level == "avx2" ? make_trainer_avx2(config, examples)
                                     : make_trainer_plain(config, examples);
    }

    long step() const { return trainer_->step; }
    void set_step(long step) {
        if (step < 0) throw std::invalid_argument("step must be at least 0");
        trainer_->step = step;
    }
    bool uses_complement() const { return trainer_->uses_complement(); }

    py::array_t<double> advance(long steps) {
        if (steps < 0) throw std::invalid_argument("steps must be at least 0");
        const auto alone = exclusive();
        py::array_t<double> losses(steps);
        double* out = losses.mutable_data();
        const py::gil_scoped_release release;
        trainer_->advance(steps, out);
        return losses;
    }

    double gradient() {
        const auto alone = exclusive();
        const py::gil_scoped_release release;
        return trainer_->gradient();
    }

    py::tuple evaluate(const IntArray& pairs, const IntArray& labels) {
        const auto alone = exclusive();
        const Examples examples = to_examples(pairs, labels, config_.modulus);
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

    // Arrays go in and out without panels and padding: matrices as [p, N] or [N, N], vectors as [N].
    FloatArray get(const std::string& kind, const std::string& name) {
        const auto alone = exclusive();
        const auto [data, rows] = find(kind, name);
        FloatArray array = rows ? FloatArray({rows, config_.width}) : FloatArray(config_.width);
        float* out = array.mutable_data();
        for (long row = 0; row < std::max(rows, 1L); row++)
            for (long k = 0; k < config_.width; k++)
                out[row * config_.width + k] = data[place(rows, row, k)];
        return array;
    }

    void set(const std::string& kind, const std::string& name, const FloatArray& array) {
        const auto alone = exclusive();
        const auto [data, rows] = find(kind, name);
        const bool fits = rows ? array.ndim() == 2 && array.shape(0) == rows && array.shape(1) == config_.width
                               : array.ndim() == 1 && array.shape(0) == config_.width;
        if (!fits) throw std::invalid_argument(kind + "." + name + " has the wrong shape");
        for (long row = 0; row < std::max(rows, 1L); row++)
            for (long k = 0; k < config_.width; k++)
                data[place(rows, row, k)] = array.data()[row * config_.width + k];
    }

private:
    // While one thread trains without the GIL, another must not touch the same trainer.
    std::unique_lock<std::mutex> exclusive() {
        std::unique_lock<std::mutex> lock(busy_, std::try_to_lock);
        if (!lock) throw std::runtime_error("this trainer is in use by another thread");
        return lock;
    }

    // Where an array of so many rows, 0 for a vector, keeps this one's value for neuron k.
    long place(long rows, long row, long k) {
        return rows ? trainer_->weights().place(row, k, panel_rows(rows)) : k;
    }

    std::pair<float*, long> find(const std::string& kind, const std::string& name) {
        const bool batch = config_.norm == Norm::batch, norm = config_.norm != Norm::none;
        if (kind == "weights" && batch && name == "norm_mean") return {trainer_->running_mean().data(), 0};
        if (kind == "weights" && batch && name == "norm_variance") return {trainer_->running_variance().data(), 0};
        Parameters* of = kind == "weights"         ? &trainer_->weights()
                         : kind == "gradient"      ? &trainer_->gradients()
                         : kind == "first_moment"  ? &trainer_->first_moments()
                         : kind == "momentum"      ? &trainer_->first_moments()
                         : kind == "second_moment" ? &trainer_->second_moments()
                                                   : nullptr;
        if (of && name == "U") return {of->u(), config_.modulus};
        if (of && name == "V") return {of->v(), config_.modulus};
        if (of && name == "W") return {of->w(), config_.modulus};
        if (of && norm && name == "norm_scale") return {of->scale(), 0};
        if (of && norm && name == "norm_shift") return {of->shift(), 0};
        for (long layer = 2; of && layer < config_.depth; layer++)
            if (name == "H" + std::to_string(layer)) return {of->hidden(layer), config_.width};
        throw std::invalid_argument("there is no array " + kind + "." + name);
    }

    Config config_;
    std::unique_ptr<Trainer> trainer_;
    std::mutex busy_;
};

py::tuple evaluate_prefixes(const std::string& level, const FloatArray& hidden, const FloatArray& output,
                            const IntArray& order, const IntArray& labels, const std::string& loss,
                            const std::optional<FloatArray>& scale, const std::optional<FloatArray>& shift) {
    check_level(level);
    if (hidden.ndim() != 2 || output.ndim() != 2 || hidden.shape(1) != output.shape(1))
        throw std::invalid_argument("hidden and output must have the shapes [n, N] and [p, N]");
    const long rows = hidden.shape(0), width = hidden.shape(1), outputs = output.shape(0);
    if (outputs < 1 || outputs > 65535) throw std::invalid_argument("there must be 1 … 65535 outputs");
    if (labels.ndim() != 1 || labels.shape(0) != rows)
        throw std::invalid_argument("labels must have the shape [n] of the rows");
    for (long i = 0; i < rows; i++)
        if (labels.data()[i] < 0 || labels.data()[i] >= outputs)
            throw std::invalid_argument("labels must lie in 0 … p - 1");
    std::vector<bool> seen(size_t(width), false);
    if (order.ndim() != 1 || order.shape(0) != width) throw std::invalid_argument("order must have the shape [N]");
    for (long k = 0; k < width; k++) {
        const int64_t neuron = order.data()[k];
        if (neuron < 0 || neuron >= width || seen[size_t(neuron)])
            throw std::invalid_argument("order must name every neuron 0 … N - 1 once");
        seen[size_t(neuron)] = true;
    }
    if (scale.has_value() != shift.has_value()) throw std::invalid_argument("a norm has both a scale and a shift");
    for (const auto& vector : {scale, shift})
        if (vector && (vector->ndim() != 1 || vector->shape(0) != width))
            throw std::invalid_argument("scale and shift must have the shape [N]");
    py::array_t<uint16_t> predictions({width + 1, rows});
    FloatArray losses({width + 1, rows});
    const PrefixTask task{
        rows, width, outputs, hidden.data(), output.data(), order.data(), labels.data(),
        scale ? scale->data() : nullptr, shift ? shift->data() : nullptr,
        choice<Loss>("loss", loss, {{"mse", Loss::mse}, {"cross-entropy", Loss::cross_entropy}}),
        predictions.mutable_data(), losses.mutable_data()};
    {
        const py::gil_scoped_release release;
        level == "avx512" ? evaluate_prefixes_avx512(task)
        : level == "avx2" ? evaluate_prefixes_avx2(task)
                          : evaluate_prefixes_plain(task);
    }
    return py::make_tuple(predictions, losses);
}

}  // namespace

PYBIND11_MODULE(_native, module) {
    module.doc() = "Training of fully connected networks on modular arithmetic, in C++.";
    module.def(
        "fma_peak",
        [](const std::string& level, double seconds) {
            check_level(level);
            const py::gil_scoped_release release;
            return level == "avx512" ? fma_peak_avx512(seconds)
                   : level == "avx2" ? fma_peak_avx2(seconds)
                                     : fma_peak_plain(seconds);
        },
        py::arg("level"), py::arg("seconds"), "GFLOP/s of multiply-adds in the registers of one core.");
    module.def("available_levels", &available_levels, "Instruction levels that this CPU has, the fastest last.");
    module.def("evaluate_prefixes", &evaluate_prefixes, py::arg("level"), py::arg("hidden").noconvert(),
               py::arg("output").noconvert(), py::arg("order").noconvert(), py::arg("labels").noconvert(), py::arg("loss"),
               py::arg("scale").noconvert() = py::none(), py::arg("shift").noconvert() = py::none(),
               "Predictions and losses [N + 1, n] without the first 0 … N neurons of an order.");
    py::class_<PyTrainer>(module, "Trainer")
        .def(py::init([](const std::string& level, long modulus, long width, long depth, const std::string& activation,
                         const std::string& loss, const std::string& norm, const std::string& optimizer,
                         const std::string& form, long batch_size, uint32_t dropout_threshold, double dropout_scale,
                         double learning_rate, double weight_decay, double beta1, double beta2, double epsilon, double momentum, uint64_t seed,
                         const IntArray& pairs, const IntArray& labels) {
                 Config config;
                 config.modulus = modulus;
                 config.width = width;
                 config.depth = depth;
                 config.batch_size = batch_size;
                 config.activation = choice<Activation>(
                     "activation", activation, {{"quadratic", Activation::quadratic}, {"relu", Activation::relu}});
                 config.loss =
                     choice<Loss>("loss", loss, {{"mse", Loss::mse}, {"cross-entropy", Loss::cross_entropy}});
                 config.norm = choice<Norm>("norm", norm,
                                            {{"none", Norm::none}, {"batch", Norm::batch}, {"layer", Norm::layer}});
                 config.optimizer = choice<Optimizer>(
                     "optimizer", optimizer,
                     {{"adamw", Optimizer::adamw}, {"adam", Optimizer::adam}, {"sgd", Optimizer::sgd}});
                 config.form = choice<Form>(
                     "form", form,
                     {{"automatic", Form::automatic}, {"direct", Form::direct}, {"complement", Form::complement}});
                 config.dropout_threshold = dropout_threshold;
                 config.dropout_scale = dropout_scale;
                 config.learning_rate = learning_rate;
                 config.weight_decay = weight_decay;
                 config.beta1 = beta1;
                 config.beta2 = beta2;
                 config.epsilon = epsilon;
                 config.momentum = momentum;
                 config.seed = seed;
                 return std::make_unique<PyTrainer>(level, config, pairs, labels);
             }),
             py::kw_only(), py::arg("level"), py::arg("modulus"), py::arg("width"), py::arg("depth"), py::arg("activation"),
             py::arg("loss"), py::arg("norm"), py::arg("optimizer"), py::arg("form"), py::arg("batch_size"),
             py::arg("dropout_threshold"), py::arg("dropout_scale"), py::arg("learning_rate"), py::arg("weight_decay"), py::arg("beta1"), py::arg("beta2"),
             py::arg("epsilon"), py::arg("momentum"), py::arg("seed"), py::arg("pairs").noconvert(),
             py::arg("labels").noconvert())
        .def_property("step", &PyTrainer::step, &PyTrainer::set_step)
        .def_property_readonly("uses_complement", &PyTrainer::uses_complement)
        .def("advance", &PyTrainer::advance, py::arg("steps"), "Take steps; the loss of each, before its update.")
        .def("gradient", &PyTrainer::gradient, "Compute the loss and the gradient of the next step, without taking it.")
        .def("evaluate", &PyTrainer::evaluate, py::arg("pairs").noconvert(), py::arg("labels").noconvert(),
             "Predictions and losses, in evaluation mode.")
        .def("get", &PyTrainer::get, py::arg("kind"), py::arg("name"))
        .def("set", &PyTrainer::set, py::arg("kind"), py::arg("name"), py::arg("array").noconvert());
}
