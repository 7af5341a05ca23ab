"""Moved to ``fedrecplus.files``; here until ``deploy`` imports it from there."""

from fedrecplus.files import beside, check_writable, write_json, write_tensors, write_text

__all__ = ["beside", "check_writable", "write_json", "write_tensors", "write_text"]
