import { equal } from "node:assert/strict";
import test from "node:test";
import BLOCKS from "../../tests/support/backend_blocks.json";
import { apiAddress, backendBlock, outputsBlock } from "../src/backend";

test("The blocks are those of holdfast backend-config", () => {
  for (const { address, name, backend, outputs } of BLOCKS) {
    equal(backendBlock(address, name), backend);
    equal(outputsBlock(address, name), outputs);
  }
});

test("The API's address is that above the console's", () => equal(apiAddress(), "https://api.example/team"));
