// A plugin of qemu's that counts the instructions that a program executes, and writes how many at each marker.
//
// Input: a program for 64-bit ARM, in which the instruction "hint #77" marks places. Output: one line on standard error
// for each marker that is passed: "instructions <all so far> <those on vectors>". Why: no clock says anything of a
// processor that is emulated.
//
// The declarations are those of qemu's interface for plugins, version 1, as far as they are used.

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

typedef uint64_t qemu_plugin_id_t;
typedef struct qemu_info_t qemu_info_t;
struct qemu_plugin_tb;
struct qemu_plugin_insn;
enum qemu_plugin_op { QEMU_PLUGIN_INLINE_ADD_U64 };
enum qemu_plugin_cb_flags { QEMU_PLUGIN_CB_NO_REGS };
typedef void (*translated)(qemu_plugin_id_t, struct qemu_plugin_tb *);
typedef void (*executed)(unsigned int, void *);

void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t, translated);
void qemu_plugin_register_vcpu_tb_exec_inline(struct qemu_plugin_tb *, enum qemu_plugin_op, void *, uint64_t);
void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *, executed, enum qemu_plugin_cb_flags, void *);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *, size_t);
const void *qemu_plugin_insn_data(const struct qemu_plugin_insn *);

int qemu_plugin_version = 1;

static uint64_t all, vectors;

static void at_marker(unsigned int cpu, void *unused)
{
    (void)cpu, (void)unused;
    fprintf(stderr, "instructions %" PRIu64 " %" PRIu64 "\n", all, vectors);
    fflush(stderr);
}

// Advanced SIMD on registers of 128 bits that is arithmetic or a move between lanes, and the SVE group: by the fields of
// the architecture's table of encodings. Loads and stores are in groups of their own.
static int is_vector(uint32_t code)
{
    int group = code >> 25 & 15;
    if (group == 2)
        return 1;
    return (group == 7 || group == 15) && !(code >> 28 & 1) && (code >> 30 & 1);
}

static void at_translation(qemu_plugin_id_t id, struct qemu_plugin_tb *block)
{
    (void)id;
    size_t count = qemu_plugin_tb_n_insns(block), wide = 0;
    for (size_t i = 0; i < count; i++) {
        struct qemu_plugin_insn *one = qemu_plugin_tb_get_insn(block, i);
        uint32_t code;
        memcpy(&code, qemu_plugin_insn_data(one), sizeof code);
        wide += is_vector(code);
        if (code == (0xd503201fu | 77u << 5))
            qemu_plugin_register_vcpu_insn_exec_cb(one, at_marker, QEMU_PLUGIN_CB_NO_REGS, NULL);
    }
    qemu_plugin_register_vcpu_tb_exec_inline(block, QEMU_PLUGIN_INLINE_ADD_U64, &all, count);
    qemu_plugin_register_vcpu_tb_exec_inline(block, QEMU_PLUGIN_INLINE_ADD_U64, &vectors, wide);
}

int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info, int argc, char **argv)
{
    (void)info, (void)argc, (void)argv;
    qemu_plugin_register_vcpu_tb_trans_cb(id, at_translation);
    return 0;
}
