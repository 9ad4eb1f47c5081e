// The colours of all figures, as in grokscope/plots/palette.py: Okabe and Ito's, for the colour-blind too.
export const COLORS = {
  train_accuracy: "#0072B2",
  test_accuracy: "#D55E00",
  corrupted_accuracy: "#CC79A7",
  recovered_accuracy: "#009E73",
};
export const LABELS = {
  train_accuracy: "train",
  test_accuracy: "test",
  corrupted_accuracy: "corrupted: as trained",
  recovered_accuracy: "corrupted: recovered",
};
export const DASHES = { corrupted_accuracy: "dash", recovered_accuracy: "dash" };
export const accuracyKeys = (names) => names.map((name) => [LABELS[name], COLORS[name], DASHES[name]]);
export const VECTORS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7"];
export const BARS = "#56B4E9";
export const GONE = "#b9b9b9";
export const TRUTH = "#009E73";
export const TRAINED = "#CC79A7";
