"""`doctor.md` lists every check."""

import pytest

from tests.conftest import GeneratedFile
from tests.support import doctor_document


@pytest.mark.generated
def test_the_table_of_checks_is_generated_from_the_checks(generated_file: GeneratedFile) -> None:
    generated_file(doctor_document.PATH, doctor_document.doctor_document())
