"""Colours of all figures: Okabe and Ito's, which colour-blind readers can tell apart. One quantity has one colour."""

BLUE, SKY, ORANGE, VERMILION = "#0072B2", "#56B4E9", "#E69F00", "#D55E00"
GREEN, PINK, BLACK = "#009E73", "#CC79A7", "#000000"
BAR_EDGE = "#1a5276"  # of histograms

Style = tuple[str, str, str]  # label, colour, line
TRAIN: Style = ("train", BLUE, "-")
TEST: Style = ("test", VERMILION, "-")
CLEAN_COLOR = SKY
ACCURACIES: dict[str, Style] = {  # by the column of a curve
    "train_accuracy": TRAIN,
    "test_accuracy": TEST,
    "corrupted_accuracy": ("corrupted: as trained", PINK, "--"),
    "recovered_accuracy": ("corrupted: recovered", GREEN, "-."),
}
INPUT_COLOR, OUTPUT_COLOR = SKY, ORANGE  # ends of a network
TRUTH_COLOR, LABEL_COLOR = GREEN, PINK  # the true answer, and the one that a corrupted example was trained on
