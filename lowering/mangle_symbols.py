"""Renames functions of native code whose names belong to the C library, the compiled runtime or LLVM.

    tir.prim_func @exp    →    tir.prim_func @user.exp

A linker knows one function by a name, and LLVM takes a function called `exp` or `memset` for the C library's, whatever its
body does. Any other name stays as it is.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr, SymbolRefAttr
from xdsl.passes import ModulePass

from ..support.walk import walk_ops
from .externs import MATH

PREFIX = "user."
_LEVELS = frozenset(["relay.func", "te.func", "tir.prim_func", "func.func"])

# ISO C and POSIX: what a compiler or the process itself may call.
_LIBRARY = """
abs labs llabs div ldiv lldiv malloc calloc realloc free aligned_alloc posix_memalign valloc memalign reallocf memcpy memmove
memset memcmp memchr memrchr memccpy mempcpy bcmp bcopy bzero strcpy strncpy stpcpy stpncpy strcat strncat strcmp strncmp
strcasecmp strncasecmp strchr strrchr strlen strnlen strspn strcspn strpbrk strstr strtok strtok_r strdup strndup strerror
strcoll strxfrm strtod strtof strtold strtol strtoll strtoul strtoull strlcpy strlcat wcslen atof atoi atol atoll ffs ffsl
ffsll abort exit atexit getenv setenv unsetenv system qsort bsearch rand srand random srandom isdigit isascii toascii isalpha
isalnum isspace isupper islower tolower toupper printf fprintf sprintf snprintf vprintf vfprintf vsprintf vsnprintf scanf
fscanf sscanf vscanf vfscanf vsscanf iprintf siprintf fiprintf puts fputs fputs_unlocked putc putchar putchar_unlocked fputc
putc_unlocked gets fgets getc getchar getc_unlocked getchar_unlocked fgetc ungetc fopen fdopen freopen fclose fread fwrite
fseek ftell rewind fflush feof ferror clearerr perror remove rename tmpfile tmpnam setbuf setvbuf fileno flockfile open close
read write pread pwrite lseek access stat fstat lstat link unlink mkdir rmdir chmod chown rename pipe dup dup2 select poll
fork execv execve execl execvp wait waitpid kill signal raise sigaction alarm sleep usleep nanosleep time clock gettimeofday
clock_gettime localtime gmtime mktime strftime times mmap munmap mprotect madvise sysconf sched_yield dlopen dlsym dlclose
setjmp longjmp index rindex htonl htons ntohl ntohs socket bind listen accept connect send recv
"""
_RESERVED = MATH.union(_LIBRARY.split())
_RESERVED_PREFIXES = ("mirstack", "pthread_", "llvm.", "__", PREFIX)


def linked_name(name: str) -> str:
    """Returns the name in native code of the module's function `name`."""
    return PREFIX + name if name in _RESERVED or name.startswith(_RESERVED_PREFIXES) else name


def source_name(name: str) -> str:
    """Returns the name in the module of native code's function `name`."""
    return name.removeprefix(PREFIX)


@dataclass(frozen=True)
class MangleSymbols(ModulePass):
    """Renames functions that have a name of the C library, the runtime or LLVM, and their references."""

    name = "mangle-symbols"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        renamed: dict[str, str] = {}
        for function in op.body.block.ops:
            name = function.properties.get("sym_name")
            if (
                function.name in _LEVELS
                and not (function.name == "func.func" and not function.regions[0].blocks)
                and isinstance(name, StringAttr)
                and (new := linked_name(name.data)) != name.data
            ):
                renamed[name.data] = new
                function.properties["sym_name"] = StringAttr(new)
        if not renamed:
            return
        for user in walk_ops(op):
            for key, value in user.properties.items():
                if isinstance(value, SymbolRefAttr) and value.root_reference.data in renamed:
                    user.properties[key] = SymbolRefAttr(renamed[value.root_reference.data], value.nested_references)
