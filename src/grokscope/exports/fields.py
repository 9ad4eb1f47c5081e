"""Which settings many runs have, which of them differ, and the words for what is exported."""

from typing import NamedTuple

from grokscope.errors import SpecError
from grokscope.spec import field_of
from grokscope.tables import Value

Kinds = dict[str, type]  # of a column: bool, int, float or str


class Survey:
    """What is known of many runs after one look at each: which fields they have, of which kind, and which differ.

    >>> survey = Survey()
    >>> survey.add({"task.modulus": 97, "training.seed": 0})
    >>> survey.add({"task.modulus": 97, "training.seed": 1})
    >>> survey.differing(), survey.kinds["training.seed"], survey.constants()["task.modulus"]
    (['training.seed'], <class 'int'>, 97)
    """

    def __init__(self) -> None:
        self.kinds: Kinds = {}
        self._first: dict[str, Value] = {}
        self._differing: dict[str, None] = {}
        self._runs = 0

    def add(self, fields: dict[str, Value]) -> None:
        """Look at one run."""
        for path, value in fields.items():
            self.kinds[path] = common_kind(self.kinds.get(path) or declared_kind(path), value)
            if path not in self._first:
                self._first[path] = value
                if self._runs:
                    self._differing[path] = None  # the runs before did not have it
            elif value != self._first[path]:
                self._differing[path] = None
        for path in self._first.keys() - fields.keys():
            self._differing[path] = None
        self._runs += 1

    def differing(self) -> list[str]:
        """The fields in which the runs differ, in the order of the fields."""
        return [path for path in self._first if path in self._differing]

    def constants(self) -> dict[str, Value]:
        """The fields that all runs have in common, with their values."""
        return {path: value for path, value in self._first.items() if path not in self._differing}


_NOTHING = type(None)
_DECLARED = {"whole number": int, "finite number": float, "true or false": bool}


def declared_kind(path: str) -> type:
    """The kind that a built-in field has even where no run has a value; that of a user's own shows in the values.

    >>> declared_kind("training.batch_size"), declared_kind("task.bits")
    (<class 'int'>, <class 'NoneType'>)
    """
    try:
        return _DECLARED.get(field_of(path).kind, str)
    except SpecError:
        return _NOTHING


def common_kind(kind: type, value: Value) -> type:
    """The kind of a column that has had values of one kind so far, and now this one. Nothing is of any kind.

    >>> common_kind(int, 0.5), common_kind(float, "relu"), common_kind(int, None)
    (<class 'float'>, <class 'str'>, <class 'int'>)
    """
    new = type(value)
    if new in (kind, _NOTHING):
        return kind
    if kind is _NOTHING:
        return new
    return float if {kind, new} == {int, float} else str


def of_kind(kind: type, value: Value) -> Value:
    """The value as its column has it."""
    return None if value is None else kind(value) if kind in (float, str) else value


class Words(NamedTuple):
    """What a variable is called in a picture, and what it is."""

    long_name: str
    description: str


_FIELDS = {
    "task.data_fraction": Words("data fraction α", "Fraction of all examples that the network is trained on."),
    "task.corruption": Words("corruption ξ", "Fraction of the training labels that were drawn anew."),
    "task.modulus": Words("modulus p", "The task is arithmetic modulo this number."),
    "model.width": Words("width N", "Hidden neurons in each layer."),
    "model.dropout": Words("dropout", "Probability to drop a value."),
    "optimizer.weight_decay": Words("weight decay", "Weight decay of the optimiser."),
    "optimizer.learning_rate": Words("learning rate", "Learning rate of the optimiser."),
    "training.batch_size": Words("batch size", "Examples in a mini-batch; nothing means the full batch."),
    "training.seed": Words("seed", "Seed of the split, the wrong labels, the initial weights and the batches."),
    "training.steps": Words("steps", "Optimisation steps of the run."),
}
_COLUMNS = {
    "train_loss": Words("train loss", "Loss of the batch that the step was taken on, before the step."),
    "test_loss": Words("test loss", "Loss on the test set."),
    "train_accuracy": Words("train accuracy", "Fraction of the training set answered with the labels trained on."),
    "test_accuracy": Words("test accuracy", "Fraction of the test set answered correctly."),
    "corrupted_accuracy": Words("memorised", "Fraction of the corrupted examples answered with their drawn labels."),
    "clean_accuracy": Words("clean accuracy", "Fraction of the other training examples answered correctly."),
    "recovered_accuracy": Words("recovered", "Fraction of the corrupted examples answered with their true labels."),
    "mean_ipr": Words("mean IPR", "Inverse participation ratio of Equation 4, mean over the live neurons."),
    "mean_gini": Words("mean Gini", "Gini coefficient of the spectra, mean over the live neurons."),
    "dead_neurons": Words("dead neurons", "Neurons with a vector of weights that is zero."),
    "norm_u": Words("‖U‖", "Frobenius norm of U, or of a Transformer's embedding."),
    "norm_v": Words("‖V‖", "Frobenius norm of V; a Transformer has none."),
    "norm_w": Words("‖W‖", "Frobenius norm of W, or of a Transformer's unembedding."),
}


def words_for_field(path: str) -> Words:
    """What a field is called, and what it is."""
    return _FIELDS.get(path, Words(path.partition(".")[2].replace("_", " "), f"The field {path} of the spec."))


def words_for_column(name: str) -> Words:
    """What a column of a curve is called, and what it is."""
    return _COLUMNS.get(name, Words(name.replace("_", " "), "A measurement of the user's own."))
