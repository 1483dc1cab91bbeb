// The comm to one kernel.
//
// Input: a connection to a kernel, and whether anything is shown. Output: its model, kept up to date, and answers to
// questions. A kernel without tcompile is asked once which comms it has, and then left alone. While nothing is
// shown, the kernel is asked to send nothing.

import type { Kernel, KernelMessage } from "@jupyterlab/services";
import type { TranslationBundle } from "@jupyterlab/translation";
import type { JSONValue } from "@lumino/coreutils";

import { KernelModel } from "./model.ts";
import { read, TARGET } from "./protocol.ts";
import type { Answer, ToKernel } from "./protocol.ts";

type Question = ToKernel extends infer Ask ? (Ask extends ToKernel ? Omit<Ask, "question"> : never) : never;

/** The timeout of a request, in milliseconds: a kernel that runs a cell answers afterwards. */
const PATIENCE = 60_000;

/** How long a kernel may take to start a subshell, in milliseconds; then the comm goes without. */
const SUBSHELL = 2_000;

/** One kernel, as long as this page has a connection to it. */
export class Link {
  readonly model = new KernelModel();
  readonly kernel: Kernel.IKernelConnection;
  private comm: Kernel.IComm | null = null;
  private opening: Kernel.IComm | null = null;
  private asked = 0;
  private looking = false;
  private restarted = false;
  private readonly waiting = new Map<number, (answer: Answer) => void>();
  private readonly told = new Set<string>();

  private readonly trans: TranslationBundle;

  constructor(kernel: Kernel.IKernelConnection, trans: TranslationBundle) {
    this.kernel = kernel;
    this.trans = trans;
    kernel.registerCommTarget(TARGET, this.announced);
    kernel.statusChanged.connect(this.status, this);
    kernel.connectionStatusChanged.connect(this.connection, this);
    void this.seek();
  }

  /** Whether the kernel has tcompile's extension loaded. */
  get connected(): boolean {
    return this.comm !== null && !this.comm.isDisposed;
  }

  /** Says whether anything is shown. Missed events are fetched when it is shown again. */
  look(looking: boolean): void {
    if (looking !== this.looking) {
      this.looking = looking;
      if (looking) {
        this.connected ? this.send({ ask: "listen" }) : void this.seek();
      } else if (this.connected) {
        this.send({ ask: "quiet" });
      }
    }
  }

  /** Sends the kernel a request. The answer has an `error` if the kernel could not answer in time. */
  ask(question: Question): Promise<Answer> {
    const number = this.send(question);
    return new Promise((resolve) => {
      const failed = (error: string): void => {
        this.waiting.delete(number);
        resolve({ type: "answer", question: number, error });
      };
      if (!this.connected) {
        failed(this.trans.__("This kernel is not connected."));
        return;
      }
      const silent = this.trans.__("The kernel did not answer: it is busy, or gone.");
      const late = setTimeout(() => failed(silent), PATIENCE);
      this.waiting.set(number, (answer) => {
        clearTimeout(late);
        this.waiting.delete(number);
        resolve(answer);
      });
    });
  }

  /** Closes the link; the kernel keeps running. */
  dispose(): void {
    this.close();
    if (!this.kernel.isDisposed) {
      this.kernel.removeCommTarget(TARGET, this.announced);
      this.kernel.statusChanged.disconnect(this.status, this);
      this.kernel.connectionStatusChanged.disconnect(this.connection, this);
    }
    this.model.clear();
  }

  /** The kernel says that it has loaded tcompile's extension; its own comm carries nothing else. */
  private readonly announced = (): void => {
    this.close();
    void this.open();
  };

  /** Finds out whether the extension was loaded before this page came. */
  private async seek(): Promise<void> {
    if (this.connected || this.opening !== null || this.kernel.isDisposed || !this.kernel.handleComms) {
      return;
    }
    try {
      const reply = await this.kernel.requestCommInfo({ target_name: TARGET });
      if (
        reply.content.status === "ok" &&
        Object.keys(reply.content.comms).length &&
        !this.connected &&
        this.opening === null
      ) {
        await this.open();
      }
    } catch {
      // The kernel has ended meanwhile, or supports no comms.
    }
  }

  /** Opens a comm of this page's own. Kernels that can do so hear it while a cell runs, in a subshell. */
  private async open(): Promise<void> {
    // The interface does not name the promise, which the class has.
    const comm: Kernel.IComm & { subshellStarted?: Promise<void> } = this.kernel.createComm(TARGET);
    this.opening = comm;
    if (this.kernel.supportsSubshells) {
      await Promise.race([comm.subshellStarted, new Promise((resolve) => setTimeout(resolve, SUBSHELL))]);
    }
    if (this.opening !== comm || this.kernel.isDisposed) {
      comm.dispose();
      return;
    }
    this.opening = null;
    comm.onMsg = (message) => this.receive(comm, message);
    comm.onClose = () => {
      if (this.comm === comm) {
        this.lose();
        this.model.clear();
      }
    };
    this.comm = comm;
    comm.open();
    if (this.looking) {
      this.send({ ask: "listen" });
    }
    this.model.listeners.forEach((listener) => listener({ cells: new Set(), functions: true, stance: true }));
  }

  private close(): void {
    const { comm } = this;
    this.lose();
    if (comm !== null && !comm.isDisposed && !this.kernel.isDisposed && this.kernel.status !== "dead") {
      comm.close();
    } else {
      comm?.dispose();
    }
  }

  /** The comm is closed: pending requests fail. */
  private lose(): void {
    this.comm = null;
    this.opening = null;
    for (const [question, answer] of [...this.waiting]) {
      answer({ type: "answer", question, error: this.trans.__("The kernel is gone.") });
    }
  }

  private send(question: Question): number {
    this.asked += 1;
    if (this.comm !== null && !this.comm.isDisposed) {
      this.comm.send({ ...question, question: this.asked } as unknown as JSONValue);
    }
    return this.asked;
  }

  private receive(comm: Kernel.IComm, message: KernelMessage.ICommMsgMsg): void {
    if (comm !== this.comm) {
      return;
    }
    try {
      const got = read(message.content.data);
      if (typeof got === "string") {
        this.complain(got);
      } else if (got.type === "answer") {
        this.waiting.get(got.question)?.(got);
      } else {
        this.model.take(got);
        if (got.malformed) {
          this.complain("parts of a message that cannot be read");
        }
        if (this.model.unknown) {
          this.complain("events of a kind that this panel does not know");
        }
      }
    } catch (error) {
      this.complain(`a message that cannot be read: ${String(error)}`);
    }
  }

  /** Logs a line, once. */
  private complain(line: string): void {
    if (!this.told.has(line) && this.told.size < 50) {
      this.told.add(line);
      console.warn(`tcompile: dropped ${line}`);
    }
  }

  private status(_: unknown, status: Kernel.Status): void {
    if (["restarting", "autorestarting", "dead", "terminating"].includes(status)) {
      this.lose();
      this.model.clear();
      this.restarted = true;
    } else if (status === "idle" && this.restarted) {
      // The restart's notice may arrive after the new kernel's first messages.
      this.restarted = false;
      void this.seek();
    }
  }

  private connection(_: unknown, status: Kernel.ConnectionStatus): void {
    if (status === "connected" && !this.connected) {
      void this.seek();
    } else if (status === "connected" && this.looking) {
      this.send({ ask: "listen" }); // messages sent while the connection was lost
    }
  }
}
