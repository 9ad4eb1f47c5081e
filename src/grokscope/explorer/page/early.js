// Asks for what the page shows first, while the browser still loads the rest of it.

import { expect } from "./api.js";
import { pathOfSweep, readState } from "./state.js";

const { sweep } = readState();
expect("/api/store");
if (sweep) expect(pathOfSweep(sweep));
