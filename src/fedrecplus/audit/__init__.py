"""The privacy audit: record what a curious server sees, attack it, and score the guesses against the truth."""

from typing import TYPE_CHECKING

from fedrecplus.lazy import lazily

if TYPE_CHECKING:
    from fedrecplus.audit.audit import (
        ORDER as ORDER,
        AuditCase as AuditCase,
        AuditExtent as AuditExtent,
        audit_cases as audit_cases,
        options_of as options_of,
        run_cases as run_cases,
    )
    from fedrecplus.audit.canaries import (
        audited_by_canaries as audited_by_canaries,
        canary_sentence as canary_sentence,
        claims_epsilon as claims_epsilon,
    )
    from fedrecplus.audit.published import file_sentence as file_sentence, read_in_file as read_in_file
    from fedrecplus.audit.result import AuditResult as AuditResult, run_audit as run_audit
    from fedrecplus.audit.scoring import ROC as ROC
    from fedrecplus.audit.second_data import joined as joined
    from fedrecplus.audit.tables import (
        AUDIT_HEADINGS as AUDIT_HEADINGS,
        VERDICT_HEADINGS as VERDICT_HEADINGS,
        Row as Row,
        applies as applies,
        case_name as case_name,
        frontier_table as frontier_table,
        is_blind as is_blind,
        known_to as known_to,
        number as number,
        percent as percent,
        rows_by_case as rows_by_case,
        strongest as strongest,
        summary as summary,
        table_line as table_line,
        verdict_sentence as verdict_sentence,
        who_reads_what as who_reads_what,
    )
    from fedrecplus.audit.transcript import assumptions as assumptions

lazily(__name__)
