# The smallest configuration that has a state: nothing is downloaded, nothing is created anywhere.

terraform {
  # Address, lock and credentials come from TF_HTTP_* (see `holdfast backend-config --env`).
  backend "http" {}
}

variable "greeting" {
  type    = string
  default = "Hello from Holdfast"
}

resource "terraform_data" "hello" {
  input = var.greeting
}

output "hello" {
  value = terraform_data.hello.output
}
