# The smallest configuration that has a state: nothing is downloaded, nothing is created anywhere.

terraform {
  # The address comes from `terraform init -backend-config=FILE`, with a file that
  # `holdfast backend-config STATE --tfbackend` prints; credentials from TF_HTTP_USERNAME and TF_HTTP_PASSWORD.
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
