// The blocks by which Terraform and OpenTofu reach a state, with the words of `holdfast backend-config`.

import { API } from "./session";

/** The API's address, without a slash at its end. */
export const apiAddress = (): string => new URL(API, location.href).href.replace(/\/$/, "");

const WHERE_CREDENTIALS_ARE = [
  "# The credentials come from the environment:",
  "# TF_HTTP_USERNAME (the token's ID) and TF_HTTP_PASSWORD (its secret).",
  "# Keep them out of this file.",
];

/** Returns a text quoted for HCL. */
const quoted = (text: string): string => JSON.stringify(text).replace(/([$%])\{/g, "$1$1{");

/** Returns the `terraform` block of a configuration whose state has this name. */
export function backendBlock(address: string, name: string): string {
  const settings = {
    address: `${address}/states/${name}`,
    lock_address: `${address}/locks/${name}`,
    lock_method: "PUT",
    unlock_address: `${address}/unlocks/${name}`,
    unlock_method: "POST",
  };
  const lines = Object.entries(settings).map(([setting, value]) => `${setting.padEnd(14)} = ${quoted(value)}`);
  const inside = [...lines, ...WHERE_CREDENTIALS_ARE].map((line) => `    ${line}`);
  return ["terraform {", '  backend "http" {', ...inside, "  }", "}"].join("\n");
}

/** Returns the data source by which other configurations read the outputs of a state. */
export function outputsBlock(address: string, name: string): string {
  const words = name.replace(/[^A-Za-z0-9]/g, "_");
  const label = /^\d/.test(words) ? `_${words}` : words;
  return `# An output is data.terraform_remote_state.${label}.outputs.<name>.
data "terraform_remote_state" "${label}" {
  backend = "http"
  config = {
    address = ${quoted(`${address}/outputs/${name}`)}
  }
  # The credentials come from the environment:
  # TF_HTTP_USERNAME (the token's ID) and TF_HTTP_PASSWORD (its secret).
  # Keep them out of \`config\`, which Terraform stores in the state.
  # Any role except auditor is enough, if its scope covers ${name}.
  # If the client encrypts the state, use /states/ instead of /outputs/,
  # with the role reader.
}`;
}
