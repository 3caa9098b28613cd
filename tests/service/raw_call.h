// Calls a method by name with raw bytes: to send what generated stubs cannot,
// and to call services that have no generated stubs.
#ifndef ATTENDANT_TESTS_SERVICE_RAW_CALL_H_
#define ATTENDANT_TESTS_SERVICE_RAW_CALL_H_

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/completion_queue.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/support/byte_buffer.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace attendant {

inline grpc::ByteBuffer ToBuffer(const std::string& bytes) {
  const grpc::Slice slice(bytes);
  return grpc::ByteBuffer(&slice, 1);
}

inline std::string ToString(const grpc::ByteBuffer& buffer) {
  std::vector<grpc::Slice> slices;
  std::string bytes;
  if (!buffer.Dump(&slices).ok()) return bytes;
  for (const grpc::Slice& slice : slices) {
    bytes.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  }
  return bytes;
}

// One call, driven step by step; each step blocks until it completes. A unary
// call is also a Write, a Read and a Finish.
class RawCall {
 public:
  // Sends `token` as the bearer token unless it is empty.
  RawCall(const std::shared_ptr<grpc::Channel>& channel,
          const std::string& method, const std::string& token = "")
      : stub_(channel) {
    if (!token.empty())
      context_.AddMetadata("authorization", "Bearer " + token);
    call_ = stub_.PrepareCall(&context_, method, &queue_);
    call_->StartCall(this);
    Await();
  }
  ~RawCall() {
    if (!finished_) {
      context_.TryCancel();
      Finish();
    }
    queue_.Shutdown();
    void* tag = nullptr;
    bool ok = false;
    while (queue_.Next(&tag, &ok)) {
    }
  }

  // Returns false if the call has ended.
  bool Write(const std::string& bytes) {
    call_->Write(ToBuffer(bytes), this);
    return Await();
  }
  void WritesDone() {
    call_->WritesDone(this);
    Await();
  }
  // Returns the next reply, or nullopt if the call has ended.
  std::optional<std::string> Read() {
    grpc::ByteBuffer buffer;
    call_->Read(&buffer, this);
    if (!Await()) return std::nullopt;
    return ToString(buffer);
  }
  void Cancel() { context_.TryCancel(); }
  grpc::Status Finish() {
    grpc::Status status;
    call_->Finish(&status, this);
    Await();
    finished_ = true;
    return status;
  }

 private:
  bool Await() {
    void* tag = nullptr;
    bool ok = false;
    EXPECT_TRUE(queue_.Next(&tag, &ok));
    return ok;
  }

  grpc::ClientContext context_;
  grpc::CompletionQueue queue_;
  grpc::GenericStub stub_;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> call_;
  bool finished_ = false;
};

// Makes a unary call that sends `bytes` and returns its status.
inline grpc::Status CallWithBytes(const std::shared_ptr<grpc::Channel>& channel,
                                  const std::string& method,
                                  const std::string& bytes) {
  RawCall call(channel, method);
  call.Write(bytes);
  call.WritesDone();
  call.Read();
  return call.Finish();
}

}  // namespace attendant

#endif  // ATTENDANT_TESTS_SERVICE_RAW_CALL_H_
