// The peer of `./dev bench`: one bulk CUBIC flow over one link, in ns-3.
//
// usage: bulk MBIT_PER_S RTT_MS QUEUE_PACKETS SECONDS
//
// Prints one line: packets that reached the receiver, and nanoseconds of processor time for running the simulation,
// without building it. Two nodes and one point-to-point link, the least that ns-3 can do for such a flow: no routers, no
// queueing discipline, no tracing, no packet metadata.

#include <sys/resource.h>

#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-module.h"

using namespace ns3;

namespace {

// Of 1500 bytes on the wire, 40 are IP and TCP, 12 the timestamp option.
constexpr uint32_t kSegmentBytes = 1448;
constexpr uint16_t kPort = 5001;

int64_t ProcessorTimeNs() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto ns = [](const timeval& t) { return t.tv_sec * INT64_C(1000000000) + t.tv_usec * INT64_C(1000); };
  return ns(usage.ru_utime) + ns(usage.ru_stime);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) {
    std::fprintf(stderr, "usage: %s MBIT_PER_S RTT_MS QUEUE_PACKETS SECONDS\n", argv[0]);
    return 2;
  }
  const double mbit_per_s = std::atof(argv[1]);
  const double rtt_ms = std::atof(argv[2]);
  const uint32_t queue_packets = static_cast<uint32_t>(std::atoi(argv[3]));
  const double seconds = std::atof(argv[4]);

  Config::SetDefault("ns3::TcpL4Protocol::SocketType", TypeIdValue(TcpCubic::GetTypeId()));
  Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(kSegmentBytes));
  Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(10));
  // No limit but the congestion window.
  Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(64 << 20));
  Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(64 << 20));
  // Data goes to the transport in the pieces that it sends, which spares it cutting and joining.
  Config::SetDefault("ns3::BulkSendApplication::SendSize", UintegerValue(kSegmentBytes));

  NodeContainer nodes;
  nodes.Create(2);
  PointToPointHelper link;
  link.SetDeviceAttribute("DataRate", DataRateValue(DataRate(static_cast<uint64_t>(mbit_per_s * 1e6))));
  link.SetChannelAttribute("Delay", TimeValue(MicroSeconds(static_cast<uint64_t>(rtt_ms * 500))));
  link.SetQueue("ns3::DropTailQueue", "MaxSize", QueueSizeValue(QueueSize(QueueSizeUnit::PACKETS, queue_packets)));
  const NetDeviceContainer devices = link.Install(nodes);

  InternetStackHelper stack;
  stack.Install(nodes);
  Ipv4AddressHelper addresses;
  addresses.SetBase("10.1.1.0", "255.255.255.0");
  const Ipv4InterfaceContainer interfaces = addresses.Assign(devices);
  // Giving an address installs a queueing discipline, which would hide the device's queue.
  TrafficControlHelper().Uninstall(devices);

  BulkSendHelper source("ns3::TcpSocketFactory", InetSocketAddress(interfaces.GetAddress(1), kPort));
  source.SetAttribute("MaxBytes", UintegerValue(0));
  source.Install(nodes.Get(0)).Start(Seconds(0));
  PacketSinkHelper sink("ns3::TcpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), kPort));
  ApplicationContainer sinks = sink.Install(nodes.Get(1));
  sinks.Start(Seconds(0));

  Simulator::Stop(Seconds(seconds));
  const int64_t before = ProcessorTimeNs();
  Simulator::Run();
  const int64_t spent = ProcessorTimeNs() - before;
  const uint64_t received = DynamicCast<PacketSink>(sinks.Get(0))->GetTotalRx();
  Simulator::Destroy();
  std::printf("%" PRIu64 " %" PRId64 "\n", received / kSegmentBytes, spent);
  return 0;
}
