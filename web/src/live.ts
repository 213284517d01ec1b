// A browser opens six connections to a server at most, and a stream takes one. So all tabs share one: whoever holds the lock listens, and
// tells the others.

export interface Told {
  version: number;
  changes: number;
  plan: number;
  /** lost says that the server does not answer. */
  lost?: boolean;
}

/** listen calls with what the server tells, in every tab. */
export function listen(tell: (told: Told) => void): void {
  const name = "ambit" + location.pathname;
  const others = new BroadcastChannel(name);
  others.onmessage = (message: MessageEvent<Told>) => tell(message.data);

  void navigator.locks.request(name, () => {
    let last: Told = { version: 0, changes: 0, plan: 0 };
    const say = (told: Told) => {
      tell(told);
      others.postMessage(told);
    };

    const connect = () => {
      const stream = new EventSource("api/v1/live");
      stream.onmessage = (message: MessageEvent<string>) => {
        last = JSON.parse(message.data) as Told;
        say(last);
      };
      stream.onerror = () => {
        say({ ...last, lost: true });
        // A browser tries again by itself, but for some errors.
        if (stream.readyState === EventSource.CLOSED) setTimeout(connect, 5000);
      };
    };

    connect();

    return new Promise(() => {});
  });
}
