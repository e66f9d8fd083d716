/** What PostGraphile 5.1 takes from Node 22, for Node 20. */
Promise.withResolvers ??= function withResolvers() {
  let resolve;
  let reject;
  const promise = new this((onResolve, onReject) => {
    resolve = onResolve;
    reject = onReject;
  });
  return { promise, resolve, reject };
};
