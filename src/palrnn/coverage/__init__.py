"""Do the error bars hold? The study behind docs/uncertainty.md."""

from palrnn.coverage.page import update_page
from palrnn.coverage.study import CoverageStudy, coverage_status, coverage_study, is_coverage_folder
