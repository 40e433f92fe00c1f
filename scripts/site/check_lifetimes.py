#!/usr/bin/python3
"""Fails on a public function whose result a temporary takes with it, as C++20's loops take f.report() in
`for (auto& b : f.report().front().breaks)`: what is made of a temporary must be a value of its own.

- A member function that returns a reference is qualified: `&`, or `const&` beside one for `&&` that returns a value or is deleted.
- A function that returns a list of structs returns a List (base/list.h), whose elements are values where it is a temporary.

Public are the functions and public member functions of include/tilewright/ outside of `detail`.

Usage: scripts/site/check_lifetimes.py"""
import re
import sys

# What keeps the object that is referred to is not the one that is asked: the kernel under construction is the Builder's. And axes are
# arguments, which are read during their call.
KEPT_ELSEWHERE = {"Value::type", "Value::builder", "Axes::operator const std::vector<long> &"}
# Handles, whose copies are the same.
HANDLES = {"Tensor", "Value"}


def members_of(cursor, outer=""):
    """(name, cursor of a public member function), those of classes in it as well."""
    for member in cursor.get_children():
        if member.access_specifier != AccessSpecifier.PUBLIC:
            continue
        if member.kind in public_api.TYPES and member.is_definition():
            yield from members_of(member, f"{outer}{member.spelling}::")
        elif member.kind in public_api.FUNCTIONS:
            yield outer + member.spelling, member


def functions_of(space):
    for cursor in space.get_children():
        if cursor.kind == CursorKind.NAMESPACE and cursor.spelling != "detail":
            yield from functions_of(cursor)
        elif (cursor.kind in public_api.TYPES and cursor.is_definition()) or \
                cursor.kind == CursorKind.CLASS_TEMPLATE_PARTIAL_SPECIALIZATION:
            yield from members_of(cursor, f"{cursor.spelling}::")
        elif cursor.kind in public_api.FUNCTIONS:
            yield cursor.spelling, cursor


def wrong_reference(name, cursor, moved):
    """What is wrong with a member function that returns a reference, or ''."""
    result = cursor.result_type
    deleted = cursor.is_deleted_method()
    if cursor.semantic_parent.kind == CursorKind.NAMESPACE or cursor.is_static_method() or deleted or name in KEPT_ELSEWHERE:
        return ""
    own = cursor.semantic_parent.spelling
    if result.kind == TypeKind.RVALUEREFERENCE:
        return "returns a reference to what was moved from: it must return a value"
    if result.kind != TypeKind.LVALUEREFERENCE or re.fullmatch(rf"(const )?([\w:]+::)?{own}(<.*>)? &", result.spelling):
        return ""
    if cursor.type.get_ref_qualifier() != RefQualifierKind.LVALUE:
        return "returns a reference, so it must be qualified: &, or const& beside one for &&"
    if cursor.is_const_method() and name not in moved:
        return "is const&, which temporaries match: there must be one for && that returns a value or is deleted"
    return ""


def wrong_list(cursor):
    element = re.fullmatch(r"std::vector<(?:const )?([\w:]+)>", cursor.result_type.spelling)
    if not element or cursor.result_type.get_template_argument_type(0).get_canonical().kind != TypeKind.RECORD:
        return ""
    name = element[1].split("::")[-1]
    if name in HANDLES or element[1].startswith("std::"):
        return ""
    return f"returns a list of structs, so it must be a List<{name}>"


def main():
    unit = public_api.Reader().parse()
    spaces = [c for c in unit.cursor.get_children() if c.kind == CursorKind.NAMESPACE and c.spelling == public_api.NAMESPACE]
    functions = [f for space in spaces for f in functions_of(space)]
    moved = {name for name, cursor in functions if cursor.type.get_ref_qualifier() == RefQualifierKind.RVALUE}
    wrong = 0
    for name, cursor in functions:
        for problem in filter(None, (wrong_reference(name, cursor, moved), wrong_list(cursor))):
            print(f"{cursor.location.file.name}:{cursor.location.line}: {name} {problem}")
            wrong += 1
    print(f"check_lifetimes: {len(functions)} public functions, {wrong} whose results a temporary takes with it")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    try:
        from clang.cindex import AccessSpecifier, CursorKind, RefQualifierKind, TypeKind

        import public_api
    except ImportError as missing:
        print(f"[  SKIPPED ] check_lifetimes: {missing}; `scripts/setup.sh test` installs it")
        sys.exit(77)
    main()
